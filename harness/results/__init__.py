"""The results folder: what is stored, how it is read back, and points beside their baselines.

May import `common`, `fabric`, `topos`, `workloads`, `model`, `analysis`, `engines`, `plots`,
`harness.options` and `harness.points`.
"""
