"""Options of a sweep: from the texts that a user gives to the values that a figure makes its points from.

fields.py         one record for each option of a sweep
options.py        options of a sweep, resolved with a figure's defaults
parsers.py        parsers of options: text to value
profiles.py       profiles: named sets of defaults for short or long runs
rates.py          link rates as options and figures give them
retries.py        how often a suspect point is run again
stack_options.py  the option `--stack`
windows.py        how long a point between real hosts runs
files/            files that users name in options

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `engines` and
`harness.points`.
"""
