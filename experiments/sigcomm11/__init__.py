"""Raiciu et al., Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM 2011).

`whole.py` is the paper in its order of sections; each other module has one or more of its experiments.
"""
