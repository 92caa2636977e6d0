"""Duan: scaling the functions of an IMS under overload (slides, University of Hong Kong, 2015).

figures.py     figures, and the experiment
ladder.py      the published steps of load and scaling, as workloads
metrics.py     which function overloads first, failed calls, setup times
statements.py  what the slides say on each step

May import `workloads`, `model`, `analysis`, `engines` and `harness`.
"""
