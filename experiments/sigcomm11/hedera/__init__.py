"""The paper's comparison with central flow scheduling (Hedera): figures, metrics, published statements.

figures.py     figures, and the experiment
metrics.py     metrics of central flow schedulers
statements.py  what the paper says, as recalled

May import `model`, `analysis`, `engines`, `harness` and `experiments.sigcomm11`.
"""
