"""Plan a sweep from its options: points, link rates, jobs.

May import `common`, `fabric`, `topos`, `workloads`, `model`, `engines`, `harness.experiment`,
`harness.options`, `harness.labels`, `harness.baseline` and `harness.results`.
"""
