"""The simulated IMS (docs/experiments/ims.md).

point.py  a point about SIP calls
twin.py   servers of the core behind the interface that both engines use

May import `common`, `fabric`, `topos`, `workloads`, `model`, `engines.engine`, `engines.ims` and
`engines.provenance`.
"""
