"""Help beyond `--help`: `completion.py` (of shells), `manual.py` (man pages), `docs.py` (the site).

May import `common`, `fabric`, `topos`, `controllers`, `model`, `engines`, `harness.cli` and
`harness.options`.
"""
