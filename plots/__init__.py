"""Charts of loaded points, written as SVG, PDF and PNG.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis` and `engines`
(names only).
"""
