"""Charts of SIP calls through an IMS.

controlled.py  what a controller does over time
knee.py        calls completed and setup time by load
ladder.py      the published steps of load and scaling
policies.py    calls lost against instances, by policy

May import `model`, `analysis`, `plots.data` and `plots.shared`.
"""
