"""Charts of multipath TCP whose subflows a controller adds on demand.

by_assumption.py         one assumption changed at a time
by_controller_option.py  one option of the controller changed at a time
demand_over_time.py      goodput and subflows over time
subflows_beside.py       real hosts beside simulated ones
time_to_demand.py        time from a flow's start to its demand
trade_off.py             throughput against subflows

May import `controllers`, `workloads`, `model`, `analysis`, `engines`, `plots.data` and `plots.shared`.
"""
