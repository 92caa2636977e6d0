"""How experiments are run: parse, plan, execute, store, judge, present.

The order of its parts is a contract in pyproject.toml: each imports only those below it.
"""
