"""Metrics, published numbers, and verdicts on them from stored points.

claims.py      each statement beside its simulated and its emulated value
measures.py    ways to read a metric off a figure's points
metric.py      the record of a metric
metrics.py     the metrics of every experiment
noted.py       measurements that were made before
published.py   published numbers as data
readings.py    numbers read off one stored point, as metrics use them
remembered.py  verdicts that this version is known to give
sentences.py   the score of a paper by its sentences
verdicts.py    each published statement beside the measured value

May import `common`, `topos`, `workloads`, `model`, `analysis`, `engines`, `harness.experiment`,
`harness.plan` and `harness.results`.
"""
