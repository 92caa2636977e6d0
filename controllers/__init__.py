"""Routing decisions: pure functions of the graph, the packet header and a seed.

Imports `common` and `topos`. `openflow/` is the only part that is a process.
"""
