"""Execution of points: in this process, in worker processes, on a cluster.

executor.py  the interface between a sweep and what runs its points
machines.py  the machines of a sweep, each with its executor
point.py     run one point, check its result, store it
sweep.py     run the points of a plan that are not finished yet
workers.py   worker processes of this machine
cluster/     the workers of a Dask cluster

May import `common`, `fabric`, `topos`, `workloads`, `model`, `analysis`, `engines`, `harness.metrics`,
`harness.options`, `harness.plan`, `harness.points`, `harness.results` and `harness.watch`.
"""
