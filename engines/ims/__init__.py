"""What the simulated and the real IMS share: the run of a load, the controller, and the result.

checks.py     checks of a spec about SIP calls
readings.py   readings of a running IMS, simulated or real
run.py        run a load through an IMS and control it
summarise.py  the RunResult of an IMS from what was measured

May import `common`, `topos`, `controllers`, `workloads` and `model`.
"""
