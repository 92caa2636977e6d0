"""Adapter from stored points to the charts of `plots/`, which know nothing of how points are stored."""
