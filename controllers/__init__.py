"""Routing decisions as pure functions of the graph, the packet header and a seed.

groups.py     ECMP groups of every switch towards every switch that has hosts
hashing.py    the hash of the 5-tuple; the C++ core computes exactly the same
routing.py    policies: which of the equal paths a flow takes
probes.py     ports that make a ping take a given flow's path
"""
