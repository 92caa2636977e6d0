"""Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010: the queue that TCP needs, and short flows.

The published numbers of `queue.py` are still among the statements of `experiments.sigcomm11`.
"""
