"""Experiments from a user's file: `refabric run ./mine.py`.

define.py           `experiment(...)`: what a user's file calls
experiment_file.py  load a user's file, which runs it
flows.py            the flows that a user's function returns, checked
guard.py            errors of a user's functions, in one line
template.txt        what `refabric new` writes

May import `common`, `topos`, `workloads`, `model`, `analysis`, `plots`, `harness.experiment`,
`harness.metrics`, `harness.options`, `harness.plan` and `harness.results`.
"""
