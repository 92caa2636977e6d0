"""What can be run: one package per paper, post or study, each with its figures, published numbers and
metrics.

May import every other package but tests. `registry.py` lists all experiments.
"""
