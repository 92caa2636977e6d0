"""Raiciu et al., Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM 2011).

`whole.py` is the paper in its order of sections; each other module or package is one of its experiments.
Statements hold the published numbers, also those of the CS244 2013 post on the paper. From other packages
`whole.py` takes the permutation of `cs244_2013` and the congestion controls of `coupled`. Both are figures
of this paper.
"""
