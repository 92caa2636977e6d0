"""Charts: pure drawing from loaded points to SVG, PDF and PNG.

registry.py   every chart by name, with its title and how to read it
data.py       what a chart needs to know of a point
charts/       one file per chart, in a folder per subject
shared/       the sheet, the style, saving and grouping

May import the engines' names, `analysis`, `model` and what is left of them; never `harness`.
"""
