"""Metrics, published numbers, and the table of all points.

columns.py    summary.csv: one row per point
measures.py   ways to read a metric off a figure's points
metric.py     the record of a metric
metrics.py    the metrics of every experiment
published.py  published numbers as data
readings.py   numbers read off one stored point, as metrics use them

May import `common`, `topos`, `workloads`, `model`, `analysis`, `harness.points` and `harness.results`.
"""
