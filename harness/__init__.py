"""How experiments are run: parse, plan, execute, load, present.

cli/       commands, options, progress, tables
plan/      from options to the points of a sweep, their link rates and times
execute/   run points in this process, in worker processes or on a cluster
results/   the results folder: write, read, summarise
claims/    published numbers and verdicts on them
report/    the HTML report
compare/   two results folders side by side

May import `plots` and everything left of it, and no experiment.
"""
