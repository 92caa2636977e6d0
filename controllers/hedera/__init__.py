"""Central scheduling of large flows in multi-rooted trees: Al-Fares et al., Hedera, NSDI 2010. Pure.

`demands`: the rates of flows if only hosts limited them. `first_fit` and `annealing`: choice of a path for
each flow. `large_flows`: choice of flows. `candidates`: the possible paths.
"""
