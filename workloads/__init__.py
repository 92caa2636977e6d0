"""Workloads: who sends to whom, how much and when. Pure.

matrices.py     traffic matrices by name
long_flows.py   matrices of flows that last until the run ends
sizes.py        distributions of flow sizes
flow.py         a flow between two hosts
generated.py    flows that start at different times
limits.py       checks of workloads' parameters
map_reduce.py   the shuffle of map-reduce jobs
per_host.py     matrices by the number of flows per host
permutation.py  a random permutation of the hosts
placed.py       matrices that depend on the location of hosts
sequential.py   transfers one after the other
sip.py          SIP calls and registrations through an IMS
to_one.py       many senders, one receiver
trace.py        the flows of a user's file or function

May import `common` and `topos`.
"""
