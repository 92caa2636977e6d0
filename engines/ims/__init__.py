"""The workload `ims`: SIP calls through an IMS, simulated and with real programs (docs/experiments/ims.md).

`calls` is the run with its controller, and its result; `simulated` and `real` run it on their engines. The
settings of the workload are in workloads/sip.py.
"""
