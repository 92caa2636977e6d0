"""How experiments are run: parse, plan, execute, load, present.

cli/           commands, options, progress, tables
options/       options of a sweep, parsed and resolved with a figure's defaults
points/        the baseline of a point, names of points and networks
plan/          from options to the points of a sweep, their link rates and times
execute/       run points in this process, in worker processes or on a cluster
results/       the results folder: write, read, summarise
metrics/       metrics, published numbers, summary.csv
claims/        verdicts on published numbers
report/        the HTML report
compare/       two results folders side by side
load.py        each figure of an experiment with its stored points, and verdicts on them
catalogue.py   the experiments that a command can run
experiment.py  the definition of an experiment and its figures
streams.py     what the commands write to: consoles, and streams of JSON lines
api/           the Python interface
own/           experiments from a user's file
watch/         the page that shows a point at work

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis`, `engines`,
`setup` and `plots`.
"""
