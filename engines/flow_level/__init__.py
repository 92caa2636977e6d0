"""Engines without packets: steady rates of all flows, and completion times under an ideal scheduler.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `model`, `engines.core_setup`,
`engines.engine` and `engines.provenance`.
"""
