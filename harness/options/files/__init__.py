"""Files that users name in options: networks, sizes of flows, flows, and traces of links, as text for a spec.

`texts.py` reads a file; `networks.py`, `sizes.py`, `traces.py` (flows) and `link_traces.py` read the formats.

May import `common`, `topos`, `workloads` and `model`.
"""
