"""Open vSwitch as a data plane: one bridge per switch, links shaped by the kernel's HTB, OpenFlow rules.

datapath.py        choose the kernel's or the user-space datapath by trying
daemons.py         the run's own ovsdb-server and ovs-vswitchd
database.py        bridges, ports and controllers in one transaction (RFC 7047)
wires.py           veth pairs and their queue disciplines
counters.py        counters of queues and of the switches' sockets
controller.py      the OpenFlow controller's process
dataplane.py       all of it behind the DataPlane protocol
checks.py          what Open vSwitch cannot carry, and what it needs
own_controller.py  the user's own controller
relay.py           relay to a controller outside of the namespaces
sockets.py         buffer space of the user-space datapath's sockets

May import `common`, `topos`, `controllers`, `model` and `engines.emulation`.
"""
