"""The HTML report, its sections and its charts.

claims.py      a paper's claims as rows of tables
comparison.py  the page of `refabric report --compare A B`
figures.py     draw the charts of figures from stored points
in_short.py    the results, their basis, and what the machine did
kept.py        whether charts and report would be the same again
points.py      settings, commands that repeat a run, tables of points
provenance.py  machine, kernel, tools, sysctls, revision
report.py      the page itself
svg.py         the SVG of a chart as a picture for a page
words.py       the sentences
templates/     the page's HTML and CSS

May import `common`, `topos`, `workloads`, `model`, `analysis`, `engines`, `plots`, `harness.claims`,
`harness.compare`, `harness.execute`, `harness.experiment`, `harness.load`, `harness.metrics`,
`harness.options`, `harness.plan`, `harness.points`, `harness.results` and `harness.watch`.
"""
