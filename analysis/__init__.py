"""Readings of results: pure functions of flows, ports and samples.

Completion times, fairness, idleness, conservation of packets, agreement of two engines, statistics, theory.
May import `model` and what is left of it; no engine, no experiment and no store.
"""
