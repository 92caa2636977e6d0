"""Workloads: who sends to whom (`matrices.py`), and the programs that generate the traffic."""
