"""Shared parts of charts: layout, look, saving, names of settings, and comparisons.

arms.py             points of several arms at several loads
axis_labels.py      labels of axes that several charts have
calls.py            charts of an IMS
fairness.py         Jain's index of a point
intervals.py        the 95 % interval of a mean
labels.py           places for names beside marks
naming.py           names of settings, in files and in words
pdf_fonts.py        fonts in PDF files
ranks.py            values of several seeds, sorted together
replicas.py         charts of replicated networks
saving.py           save charts as SVG, PDF and PNG
settings_folder.py  where matplotlib keeps its settings
sheet.py            lay out a chart
studies.py          points of charts of gains
style.py            palette, marks and recurring texts
transports.py       charts that compare transports

May import `common`, `topos`, `workloads`, `model`, `analysis`, `engines` and `plots.data`.
"""
