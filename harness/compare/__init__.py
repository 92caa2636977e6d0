"""Comparison of two results folders.

compare.py  two sets of results side by side
agreement.py  what must agree, for the exit code
match.py    which points are compared with each other
show.py     a comparison as tables and as JSON

May import `common`, `topos`, `model`, `analysis`, `engines`, `harness.metrics`, `harness.options`,
`harness.points`, `harness.results` and `harness.streams`.
"""
