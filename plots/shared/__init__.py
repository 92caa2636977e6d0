"""Shared parts of charts: layout, look, saving, names of settings, and comparisons."""
