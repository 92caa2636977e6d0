"""Make the core's Simulation from a RunSpec, for the simulator and the flow-level engines.

May import `common`, `fabric`, `topos`, `controllers`, `ccp` and `model`.
"""
