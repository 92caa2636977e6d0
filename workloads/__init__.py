"""Workloads: who sends to whom, how much and when. Pure.

matrices.py     traffic matrices by name
long_flows.py   matrices of flows that last until the run ends
sizes.py        distributions of flow sizes

May import `topos` and the packages to its left (docs/architecture.md).
"""
