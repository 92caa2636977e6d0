"""Duan: responsive multipath TCP (slides, University of Hong Kong, 2015).

assumptions.py  one assumption changed at a time
figures.py      figures, and the experiment
metrics.py      metrics of the slides' Table I
real.py         real hosts beside simulated ones, flow by flow
schemes.py      the schemes of Table I, and others
statements.py   Table I as statements

May import `workloads`, `model`, `analysis`, `engines` and `harness`.
"""
