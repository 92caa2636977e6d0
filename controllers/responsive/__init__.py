"""Responsive multipath TCP: a central controller adds subflows to connections whose demand is not met. Pure.

settings.py    its thresholds, and the cost of messages
monitor.py     a sender's monitor: measures rates, and asks for paths
routes.py      subflows on links, and the throughput that another one can expect
controller.py  demands and paths, in answer to the monitors
messages.py    messages between monitors and controller, with a delay and a loss
loop.py        all of it together, driven by a clock
outage.py      outages of the controller, or of some of the monitors

Source: Duan, slides of 2015 (University of Hong Kong); docs/responsive-mptcp.md says what they leave open.

May import `common`, `topos`, `controllers.hashing`, `controllers.hedera` and `controllers.scheduler`.
"""
