"""Raiciu et al., Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM 2011).

congestion_controls.py  the permutation by congestion control
dual_homed_and_star.py  hosts with two NICs, and a single switch
dual_homed_load.py      a FatTree and a dual-homed one of equal cost, by load
fat_tree_sizes.py       the permutation with 128, 1024 and 8192 hosts
flow_level.py           rates of flow-level models beside the packet-level simulator
network_statements.py   what the paper says about other networks
oversubscribed.py       an oversubscribed FatTree by load and by matrix
permutation.py          throughput and rank on a FatTree
quotes.py               the paper's words, as notes have them
short_beside_long.py    short flows by the transport of long flows
statements.py           what the paper says about the others
subflows_needed.py      subflows needed for 90 % of several networks
topologies.py           the same permutation on networks of similar size
ec2/                    Amazon EC2: a cloud of several tenants
hedera/                 central flow scheduling
robustness/             losses, fairness, cost, failing links

`whole.py` is the paper in its order of sections; each other module or package is one of its experiments.
Statements hold its published numbers.

May import `common`, `topos`, `controllers`, `workloads`, `model`, `analysis`, `engines` and `harness`.
"""
