"""Open vSwitch as a data plane: one bridge per switch, links shaped by the kernel's HTB, OpenFlow rules.

datapath.py     choice of the kernel or user-space datapath, by trying
daemons.py      ovsdb-server and ovs-vswitchd of the run
database.py     bridges, ports and controllers in one transaction (RFC 7047)
checks.py       what Open vSwitch cannot carry, and what it needs on the machine
wires.py        links between bridges and hosts, with their queue disciplines
sockets.py      buffer of the user-space datapath's sending socket
counters.py     frames lost at the switches' sockets
controller.py   the process of the OpenFlow controller
dataplane.py    the DataPlane protocol over all of these
"""
