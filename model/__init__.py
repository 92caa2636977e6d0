"""What a point is: its spec, its result, its flows, and the names of transports and algorithms.

machine/   what a machine carries, and what its noise does to a number

May import `workloads` and the packages to its left (docs/architecture.md); no engine and no experiment.
"""
