"""Help beyond `--help`: `completion.py` (of shells), `manual.py` (man pages), `docs.py` (the site).

It imports `harness.plan`, `harness.cli.options` and what the names to complete are taken from.
"""
