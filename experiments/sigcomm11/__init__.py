"""Raiciu et al., Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM 2011).

`whole.py` is the paper in its order of sections; each other module or package is one of its experiments.
Statements hold its published numbers. This package imports no other package of experiments.
"""
