"""Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010: the queue that TCP needs, and short flows.

`queue.py` and `short_flows.py` are experiments, `statements.py` has the published numbers of the first.

May import `common`, `model`, `engines` and `harness`.
"""
