"""Charts from results, one a module; each draws a list of `PointSummary` and writes SVG, PDF and PNG.

data.py          what a chart needs to know of a point; points grouped into panels
style.py         figure, palette, caption, saving
throughput.py    mean goodput against the number of subflows
rank.py          goodput of every flow, slowest to fastest
"""
