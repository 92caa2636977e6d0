"""Open vSwitch as a data plane: one bridge a switch, links shaped by the kernel's HTB, OpenFlow rules.

datapath.py     kernel or user-space datapath, found by trying
daemons.py      the run's own ovsdb-server and ovs-vswitchd
database.py     bridges, ports and controllers in one transaction (RFC 7047)
shaping.py      rate, queue and delay of an interface (HTB, pfifo, netem)
counters.py     what the queues and the switches' sockets have counted
controller.py   the OpenFlow controller's process
dataplane.py    all of it behind the DataPlane protocol
"""
