"""Readings of results: pure functions of flows, ports and samples.

agreement.py      agreement of two measurements of the same flows
completion.py     flow completion times from a point's rows
conservation.py   conservation of packets at switches and hosts
constant_rate.py  loss of flows of constant rate, as text
idleness.py       the share of time in which subflows had nothing to send
jobs.py           completion times of jobs of several transfers each
laws.py           laws of TCP in closed form, and how samples agree with them
noise_effects.py  effects of noise on the metrics of a point
normalised.py     completion times by flow size as pFabric counts them
plausibility.py   goodput above the links, and flows that starve
quantities.py     names, units and words of quantities, for metrics and charts
robustness.py     where packets are lost, and goodput while links are down
sequential.py     transfers by several transports one after the other
shares.py         shares of links, where replicas stand side by side
spread.py         means and standard deviations of samples for each flow
stats.py          statistics of a point's flows
steadiness.py     whether a measured window is steady
theory.py         shares at the equilibrium of coupled congestion controls
watch/            what a live page shows of a point

Completion times, fairness, idleness, conservation of packets, agreement of two engines, statistics, theory.

May import `fabric`, `topos`, `workloads` and `model`.
"""
