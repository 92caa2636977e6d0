"""Execution of points: in this process, in worker processes, on a Dask cluster.

May import `common`, `fabric`, `topos`, `workloads`, `model`, `analysis`, `engines`, `harness.metrics`,
`harness.options`, `harness.plan`, `harness.labels`, `harness.baseline`, `harness.results`
and `harness.watch`.
"""
