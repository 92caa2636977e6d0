"""What a page shows of a point: its network as a drawing, and its state step by step. Pure.

drawing.py  a network as a drawing in layers
steps.py    the state of a point step by step

May import `topos` and `model`.
"""
