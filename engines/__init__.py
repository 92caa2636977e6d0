"""Engines: each turns a RunSpec into a RunResult.

engine.py       the protocol that every engine implements
registry.py     engines by name
dispatch.py     several engines behind one protocol
core_setup/     what the simulator and the flow-level engine share
simulation/, flow_level/, emulation/, fake.py    the engines
provenance.py   machine and revision of a result, read before traffic starts
scheduling.py   the network as a central flow scheduler sees it
ims/            what the simulated and the real IMS share
kernel_hosts/   what the engines whose hosts have a Linux kernel share
linux/          real Linux in virtual time: one User-Mode Linux guest per point

No engine imports another one.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model` and `analysis`.
"""
