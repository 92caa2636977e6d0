"""Engines: each turns a RunSpec into a RunResult. No engine imports another one.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model` and `analysis`.
"""
