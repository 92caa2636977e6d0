"""What a point is: its spec, its result, its flows, and the names of transports and algorithms.

May import `common`, `fabric`, `topos`, `controllers`, `workloads` and `ccp`.
"""
