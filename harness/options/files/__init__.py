"""Files that users name in options: networks, sizes of flows, flows, and traces of links, as text for a spec.

`networks.py`, `sizes.py`, `traces.py` (flows) and `link_traces.py` each read one format.

May import `common`, `topos`, `workloads` and `model`.
"""
