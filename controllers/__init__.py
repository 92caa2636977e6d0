"""Routing and scheduling decisions as pure functions of the graph, the packet header and a seed.

groups.py     ECMP groups of every switch towards every switch with hosts
hashing.py    the hash of the 5-tuple; the C++ core computes the same
routing.py    policies: which of the equal paths a flow takes
rules.py      OpenFlow rules of a flow or of a whole table
scheduler.py  the interface of central flow schedulers (hedera/); schedulers.py lists them
probes.py     ports that make a ping take a given flow's path
openflow/     the controller of OpenFlow switches
"""
