"""What can be run: a module or package per paper, post or study; `registry.py` lists all experiments.

May import all but `refabric`.
"""
