"""The CS244 2013 post by Wilson and O'Connor, which reproduced figures of SIGCOMM 2011 on Mininet.

`post.py` has its figures, `statements.py` its published numbers, and `one_to_one.py` is its main figure for
any size and matrix.

May import `model`, `harness` and `experiments.sigcomm11`.
"""
