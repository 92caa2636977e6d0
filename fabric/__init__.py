"""The fabric: all links and switches of a network in one C++ core, with a virtual or a real clock.

plan.py         NetworkPlan: a network as flat arrays
readings.py     counters of the core
core/           packets, ports, queue disciplines, forwarding; used with both clocks
simulation/     simulated end hosts in virtual time
realtime/       frames between the veth ends of real hosts, in real time
host_io/        sockets of real hosts: traffic, pings, socket dumps
CMakeLists.txt  the build of the core
_core.pyi       types of the core for Python
bindings.cpp    Python bindings, with bindings.hpp and network_bindings.hpp
sources.cpp     what identifies the sources of a core, with sources.hpp
ccp/            the datapath of a congestion control plane
flow_level/     rates and completion times without packets
ims/            servers of a simulated IMS

May import `common`.
"""
