"""Engines: each turns a RunSpec into a RunResult.

engine.py       the protocol that every engine implements
registry.py     engines by name
dispatch.py     several engines behind one protocol
core_setup/     what the simulator and the flow-level engine share
simulation/, flow_level/, emulation/, fake.py    the engines

May import `analysis` and the packages to its left (docs/architecture.md). No engine imports another one.
"""
