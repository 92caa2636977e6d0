"""Execution of points on the workers of a Dask cluster.

capabilities.py  capabilities of a machine
cluster.py       a cluster as the machines of a sweep
executor.py      the executor: submits points, fetches their files
worker.py        what runs on a worker

May import `common`, `model`, `engines`, `harness.execute`, `harness.options`, `harness.plan`,
`harness.points` and `harness.results`.
"""
