"""What can be run: one package per paper, post or study.

A package has the figures, the published numbers and the metrics of its subject.

May import every other package but tests. `registry.py` lists all experiments.
"""
