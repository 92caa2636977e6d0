"""How experiments are run: parse, plan, execute, load, present.

Each imports only what is listed above it:

points/        baselines of points, names of points and networks
options/       options of a sweep: parsed, and resolved with a figure's defaults
results/       the results folder: write, read, summarise
streams.py     what the commands write to: consoles, and streams of JSON lines
metrics/       metrics, published numbers, summary.csv
watch/         the page that shows a point at work
experiment.py  the definition of an experiment and its figures
plan/          from options to the points of a sweep, their link rates and times
execute/       run points in this process, in worker processes or on a cluster
claims/        verdicts on published numbers
load.py        each figure of an experiment with its stored points, and verdicts on them
compare/       two results folders side by side
report/        the HTML report
own/           experiments from a user's file
catalogue.py   the experiments that a command can run
cli/           commands, progress, tables
api/           the Python interface

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis`, `engines`,
`setup` and `plots`.
"""
