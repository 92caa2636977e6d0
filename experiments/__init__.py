"""What can be run: one package per paper or post, with its figures, published numbers and metrics.

registry.py   every experiment by name
command.py    the console script `refabric`

May import every other package.
"""
