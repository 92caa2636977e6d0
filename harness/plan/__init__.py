"""Plan a sweep from its options: points, link rates, measured windows.

advice.py         the lessons of the CS244 2013 post as advice
begun.py          link rates of sweeps that have finished points
fields.py         one record for each option of a sweep
options.py        options of a sweep, resolved with a figure's defaults
outages.py        points in which part of the core is down
parsers.py        parsers of options: text to value
profiles.py       profiles: named sets of defaults for short or long runs
rate.py           the link rate of a sweep
session.py        prepare a sweep, in the order of its steps
stack_options.py  the option `--stack`
sweeps.py         the sweeps that make up figures
variants.py       which engines run a figure, and with which settings
windows.py        how long a point between real hosts runs
files/            files that users name in options

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `engines`,
`harness.execute`, `harness.experiment`, `harness.points` and `harness.results`.
"""
