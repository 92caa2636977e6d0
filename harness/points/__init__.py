"""Points by their specs alone: the baseline of a point, and the names of points and networks.

baseline.py  the baseline of a point
labels.py    names of points that stand side by side in a table or chart

May import `fabric`, `topos`, `workloads`, `model` and `engines`.
"""
