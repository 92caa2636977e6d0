"""Options of a sweep: from the texts that a user gives to the values that a figure makes its points from.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `engines` and
`harness.labels`, `harness.baseline`.
"""
