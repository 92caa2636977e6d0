"""The paper's claims on cost and robustness: figures, metrics and published statements.

figures.py     figures, and the experiments
metrics.py     retransmissions and goodput beside another transport's
statements.py  what the paper says, as recalled

May import `model`, `analysis`, `engines`, `harness` and `experiments.sigcomm11`.
"""
