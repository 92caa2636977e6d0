"""Charts of goodput by one setting: congestion control, load, traffic matrix, network.

congestion_control.py  the congestion control
load.py                the load
matrix.py              the traffic matrix
network.py             the network

May import `controllers`, `model`, `analysis`, `plots.data` and `plots.shared`.
"""
