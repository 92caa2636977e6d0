"""The CS244 2017 post by Bhat and Ren, which reproduced pFabric (SIGCOMM 2013) on Mininet.

metrics.py     one arm over another, and Linux hosts over simulated ones
statements.py  what the post found, as numbers
figures.py     the figures

May import `analysis`, `model`, `engines`, `harness` and `experiments.pfabric`.
"""
