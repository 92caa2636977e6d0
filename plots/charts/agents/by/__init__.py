"""Charts of congestion controls in an agent, by its delay, its reporting interval, or the kind of link.

agent_delay.py      the delay of the agent
link.py             the kind of link
report_interval.py  the reporting interval of the agent

May import `ccp`, `model`, `analysis`, `plots.data` and `plots.shared`.
"""
