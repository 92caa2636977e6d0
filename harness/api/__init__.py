"""The Python interface: run and load experiments as the command line does, and read results as arrays.

calls.py      run and load experiments from Python
columns.py    tables of results as numpy arrays
points.py     stored points as a notebook reads them
results.py    the results of an experiment for a notebook

May import `common`, `engines.emulation.sandbox`, `model`, `harness.catalogue`, `harness.cli`,
`harness.compare`, `harness.experiment`, `harness.load`, `harness.metrics`, `harness.options`, `harness.plan`,
`harness.points`, `harness.report` and `harness.results`.
"""
