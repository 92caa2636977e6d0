"""The fabric: all links and switches of a network in one C++ core, with a virtual or a real clock.

plan.py       NetworkPlan: a network as flat arrays
readings.py   counters of the core
core/         packets, ports, queue disciplines, forwarding; used with both clocks
simulation/   simulated end hosts in virtual time
realtime/     frames between the veth ends of real hosts, in real time
host_io/      sockets of real hosts: traffic, pings, socket dumps

May import `common`.
"""
