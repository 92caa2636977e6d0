"""The fabric: all links and switches of a network in one C++ core, driven by a virtual or the real clock.

`plan.NetworkPlan` describes a network in arrays. `VirtualFabric` sends packets through it at given times,
`Simulation` adds simulated hosts, and `RealtimeFabric` carries the frames of real hosts between their veth
ends.
"""
