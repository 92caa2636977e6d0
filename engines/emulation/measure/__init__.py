"""Measurements during a run, and the rows and tables made from them.

flow_table.py     one row per flow from the readings of a run
observing.py      periodic samples of a running point
path_pings.py     pings along the paths of the flows' subflows
readings.py       all raw readings of a run
sample_tables.py  sample tables from the readings of a run
socket_table.py   bulk readings of every subflow at its sender
summarise.py      the RunResult from the readings of a run
tool_versions.py  versions of the tools that an emulation uses
totals.py         cumulative counters at both ends of the measured window

May import `common`, `fabric`, `topos`, `controllers`, `model`, `analysis`, `engines.core_setup`,
`engines.emulation`, `engines.kernel_hosts` and `engines.provenance`.
"""
