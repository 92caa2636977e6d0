"""Charts of completion times.

fct.py             completion times of sized flows, and their slowdown
short_and_long.py  short flows beside long ones

May import `model`, `analysis`, `plots.data` and `plots.shared`.
"""
