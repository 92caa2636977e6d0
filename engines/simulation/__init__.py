"""The packet-level simulator: simulated hosts on the fabric core, in virtual time.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `model`, `analysis`, `engines.core_setup`,
`engines.engine`, `engines.ims`, `engines.provenance` and `engines.scheduling`.
"""
