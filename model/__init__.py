"""What a point is: its spec, its result, its flows, and the names of what it is made of.

Imports no engine and no experiment.
"""
