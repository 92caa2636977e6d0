"""Kinds of charts: a module has the charts of one subject. plots/registry.py lists all charts."""
