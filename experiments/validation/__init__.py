"""Validation of simulator and emulation against arithmetic, theory, another simulator, and each other.

cross_check.py      the same points on real stacks and in the simulator
htsim_reference.py  reference simulations with csg-htsim
metrics.py          what arithmetic says about links, windows and queues
statements.py       what arithmetic and theory predict

`theory.py` takes the figure on shares of a link from `experiments.coupled`.

May import `common`, `fabric`, `model`, `analysis`, `engines`, `harness` and `experiments.coupled`.
"""
