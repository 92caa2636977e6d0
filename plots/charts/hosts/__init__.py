"""Charts of end hosts and machines: CPU, noise, losses, idle subflows.

cpu.py            CPU use of the machine
loss_and_cost.py  losses, retransmissions, fairness and CPU
noise.py          effect of CPU stalls
subflow_idle.py   idle and starved subflows

May import `model`, `analysis`, `engines`, `plots.data` and `plots.shared`.
"""
