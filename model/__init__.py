"""What a point is: its spec, its result, its flows, and the names of transports and algorithms.

fields/          ranges and words of a spec's fields
machine/         what a machine carries, and what its noise does to a number
arms.py          the arms of pFabric's comparisons
congestion.py    congestion controls by name
flows.py         the flows of a point with their addresses and ports
instant.py       the state of a running point at one instant
link_events.py   links that fail or change, and the ports concerned
link_traces.py   links whose capacity changes
linux_stack.py   Linux's stack in the simulator
network_plan.py  a topology as the arrays of the fabric core
noise.py         injected noise: CPUs that stall at random
openflow.py      options of the data plane `ovs`
reasons.py       reasons for suspicion
responsive.py    options of responsive multipath TCP
result.py        RunResult: what one point measured
rows.py          rows of tables, held as columns
schedulers.py    central flow schedulers in a point
spec.py          RunSpec: everything that determines a result
transports.py    transports side by side in charts and tables
tuning.py        host tunings that matter to MPTCP

May import `common`, `fabric`, `topos`, `controllers`, `workloads` and `ccp`.
"""
