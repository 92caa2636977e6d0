"""Central scheduling of large flows in multi-rooted trees: Al-Fares et al., Hedera, NSDI 2010. Pure.

demands.py      estimate what each flow would send if only the hosts limited it
large_flows.py  select the flows to schedule
candidates.py   list the paths of a flow
first_fit.py, annealing.py    choose a path for each flow

May import `common`, `topos`, `controllers.groups`, `controllers.hashing`, `controllers.routing` and
`controllers.scheduler`.
"""
