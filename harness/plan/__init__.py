"""Plan a sweep from its options: points, link rates, jobs.

advice.py         the lessons of the CS244 2013 post as advice
begun.py          link rates of sweeps that have finished points
capabilities.py   capabilities of the machines that run points
jobs.py           the points of a plan with their expected time, and which are still to run
outages.py        points in which part of the core is down
parts.py          a plan: its jobs, and the parts of its figures
rate.py           the link rate that this machine carries for a topology
refusals.py       leave out the figures that an engine refuses
session.py        prepare a sweep, in the order of its steps
sweeps.py         the sweeps that make up figures
variants.py       which engines run a figure, and with which settings

May import `common`, `fabric`, `topos`, `workloads`, `model`, `engines`, `harness.experiment`,
`harness.options`, `harness.points` and `harness.results`.
"""
