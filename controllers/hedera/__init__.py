"""Central scheduling of large flows in multi-rooted trees: Al-Fares et al., Hedera, NSDI 2010. Pure.

`demands`: what flows would send if only hosts limited them. `first_fit` and `annealing`: which path each
takes. `large_flows`: which flows are worth it. `candidates`: the paths there are.
"""
