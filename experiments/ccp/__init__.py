"""Narayan et al., Restructuring Endpoint Congestion Control, SIGCOMM 2018: an agent sets the windows.

completion.py  completion times of an Internet link's flows
fidelity.py    agents beside the kernel's controls, beyond the paper's links
figures.py     all figures, and the experiment
incast.py      an incast by the agent's reporting interval
links.py       one flow on three kinds of links
network.py     the paper's network
statements.py  what the paper says, as numbers

May import `ccp`, `model`, `analysis`, `engines`, `harness` and `experiments.coupled`.
"""
