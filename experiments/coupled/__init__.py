"""Coupled congestion control: its share of a bottleneck, how it shifts traffic, and what it gains."""
