"""Charts of goodput, fairness and link utilisation.

cross_check.py           emulated against simulated, flow by flow
failure.py               goodput while links fail and come back
flow_level.py            flow-level models beside the packet-level simulator
link_utilisation.py      utilisation of every link
other_simulator.py       beside another simulator
rank.py                  goodput of every flow, slowest to fastest
scheduling.py            under a central flow scheduler
sequential_transfers.py  transfers by TCP and MPTCP one after the other
share.py                 share of a bottleneck beside one TCP
shift.py                 the more congested of two bottlenecks
subflows_needed.py       subflows needed for 90 %
throughput.py            mean goodput by transport
by/                      against one setting

May import `topos`, `controllers`, `workloads`, `model`, `analysis`, `engines`, `plots.data` and
`plots.shared`.
"""
