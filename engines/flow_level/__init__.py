"""Flow level: steady rates of all flows without packets, by an equilibrium or by max-min fairness.

May import `engines.core_setup` and the packages to the left of `engines` (docs/architecture.md).
"""
