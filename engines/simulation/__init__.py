"""The packet-level simulator: simulated hosts on the fabric core, in virtual time.

connections.py    subflows of a simulation that join on demand
engine.py         the engine itself: one RunSpec at a time
following.py      instants of a simulation for followers of the run
link_events.py    links that fail, degrade or recover
machine_noise.py  how late deliveries were on a machine that stalls
memory.py         estimate of a point's memory
parts.py          networks in parts, which several CPUs carry out
readings.py       run a simulation and read it at times that depend on the spec only
sample_tables.py  sample tables from the readings of a simulation
scheduled.py      a central controller in a simulation
summarise.py      the RunResult of a simulation from its readings
ims/              the simulated IMS

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `model`, `analysis`, `engines.core_setup`,
`engines.engine`, `engines.ims`, `engines.provenance` and `engines.scheduling`.
"""
