"""Readings of results: pure functions of flows, ports and samples, and the words of quantities.

May import `fabric`, `topos`, `workloads` and `model`.
"""
