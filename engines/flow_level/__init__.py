"""Flow level: steady rates of all flows without packets, by an equilibrium or by max-min fairness.

May import `engines.core_setup` and everything left of `engines`.
"""
