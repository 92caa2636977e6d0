"""The results folder: what is stored, and how it is read back and summarised.

across.py         pairs of an emulated and a simulated point
attempts.py       attempts at a point that the machine disturbed
build.py          the build of refabric: results of two builds may differ
contents.py       what a results folder holds
export.py         one zip of an experiment
known.py          whether the names and values of a stored point are known here
manifest.py       the points of a figure in a shared folder
notes.py          numbers that were read off points before
numbers.py        what tables show of a point's flows and ports
provenance.py     the provenance of points as a list of facts
store.py          write results/<experiment>/<point>/
store_reading.py  read it: whole points, or their run.json only
stored_run.py     the checked content of run.json
summary.py        stored points beside their baselines
tables.py         CSV tables, to bytes and back
tree.py           files of a results folder by their place in it

May import `common`, `fabric`, `topos`, `workloads`, `model`, `analysis`, `engines`, `plots`,
`harness.options` and `harness.points`.
"""
