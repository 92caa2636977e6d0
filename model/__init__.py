"""The model of a point: its spec, its flows, its result, and the names of congestion controls and events.

Imports no engine and no experiment.
"""
