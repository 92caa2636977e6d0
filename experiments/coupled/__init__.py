"""Coupled congestion control: its share of a bottleneck, the shift of its traffic, and its gain."""
