"""Charts of congestion controls by an agent.

windows_beside.py  windows over time, side by side
by/                against one setting

May import `ccp`, `model`, `analysis`, `plots.data` and `plots.shared`.
"""
