"""Coupled congestion control of MPTCP: its share of a bottleneck, its shift of traffic, and its gain.

`wire.py` has the experiments, `metrics.py` and `statements.py` their metrics and what theory predicts.

May import `model`, `analysis`, `engines` and `harness`.
"""
