"""Flow level: steady rates of all flows without packets, by an equilibrium or by max-min fairness.

checks.py       parts of a spec that the models do not cover
engine.py       the engines: one RunSpec at a time
equilibrium.py  rates at the equilibrium of congestion control
ideal.py        the engine `ideal`: completion times under an ideal scheduler
max_min.py      max-min fair rates by progressive filling
network.py      capacities, and the ports that flows cross
summarise.py    the RunResult of a point from steady rates

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `model`, `engines.core_setup`,
`engines.engine` and `engines.provenance`.
"""
