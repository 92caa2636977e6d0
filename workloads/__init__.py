"""Workloads: who sends to whom, how much and when. Pure; imports `common` and `topos`."""
