"""The command `refabric`: commands, options, progress and tables.

advice.py       advice on a plan, printed
arguments.py    options of a command as Python values
commands.py     the commands by name, each imported when it is used
config.py       `--config` and `--save-config`
keeping.py      the commands that keep results: list, remove and export them
kernel.py       `refabric kernel`
listing.py      `refabric list`
machine.py      `refabric doctor`, `shell` and `calibrate`
new.py          `refabric new`
next_steps.txt  the end of `refabric --help`
options.py      the options of plan, run and status
planning.py     `refabric plan`
plot.py         `refabric plot`
progress.py     the progress of a sweep
reading.py      `refabric report` and `compare`
run.py          `refabric run`
status.py       `refabric status`
table.py        tables on the terminal
watch.py        `refabric watch`
worker.py       `refabric worker`
help/           completion of shells, manual pages, the documentation's site

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `model`, `analysis`, `engines`, `setup`,
`plots`, `harness.catalogue`, `harness.claims`, `harness.compare`, `harness.execute`, `harness.experiment`,
`harness.load`, `harness.metrics`, `harness.options`, `harness.own_experiment`, `harness.plan`, `harness.points`,
`harness.report`, `harness.results`, `harness.streams` and `harness.watch`.
"""
