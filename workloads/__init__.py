"""Workloads: traffic matrices (`matrices.py`), flow sizes and arrivals. Pure; imports topos and common
only."""
