"""The packet-level simulator: simulated hosts on the fabric core, in virtual time.

May import `engines.core_setup` and the packages to the left of `engines` (docs/architecture.md).
"""
