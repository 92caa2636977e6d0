"""Coupled congestion control of MPTCP: its share of a bottleneck, its shift of traffic, and its gain.

`sweep.py` takes the statements of SIGCOMM 2011 on its permutation from `experiments.sigcomm11`.
"""
