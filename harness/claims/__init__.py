"""Verdicts on published numbers from stored points.

claims.py        each statement beside its simulated and its emulated value
noted.py         measurements that were made before
own_settings.py  which settings of a point override those of its figure
remembered.py    verdicts that this version is known to give
sentences.py     the score of a paper by its sentences
verdicts.py      each published statement beside the measured value

May import `common`, `topos`, `model`, `engines`, `harness.experiment`, `harness.metrics`,
`harness.options`, `harness.plan`, `harness.points` and `harness.results`.
"""
