"""The command `refabric`: commands, options, progress and tables.

May import all that `harness` may, and all of `harness` but the Python interface.
"""
