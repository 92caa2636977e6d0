"""Charts of loaded points, written as SVG, PDF and PNG.

registry.py   name, title and explanation of every chart; how the rest of refabric draws them
data.py       points as charts receive them, published levels, points grouped into panels
charts/       one module per chart, in a folder per subject
shared/       what charts share: layout, look, files, names of settings, groups of points
own_chart.py  a chart that a user's file draws

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis` and `engines`
(names only).
"""
