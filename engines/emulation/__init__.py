"""Real hosts: the machine's own TCP and MPTCP between network namespaces, in real time. Needs root.

`point.py` is the procedure of a run. May import what is below engines, and engines/*.py, no other engine."""
