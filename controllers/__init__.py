"""Routing decisions: pure functions of the graph, the packet header and a seed.

groups.py       ECMP groups of every switch towards every switch with hosts
hashing.py      the hash of the 5-tuple; the C++ core computes the same
routing.py      policies: which of the equal paths a flow takes
rules.py        forwarding rules of OpenFlow switches
probes.py       ports that make a ping take the path of a given flow
scheduler.py    the protocol between a central flow scheduler and a network
hedera/         Hedera's schedulers
responsive/     responsive multipath TCP: subflows where demand is not met
openflow/       the ECMP controller of OpenFlow switches, as a process
pox_ext/        the same controller under RipL-POX's name
bcube_paths.py  the parallel paths of BCube
schedulers.py   central flow schedulers by name
ims/            scaling of an IMS's functions

May import `common` and `topos`.
"""
