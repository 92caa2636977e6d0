"""Validation of simulator and emulation against arithmetic, theory, another simulator, and each other.

`theory.py` takes the figure on shares of a link from `experiments.coupled`.
"""
