"""Comparison of two results folders: which points belong together, how they differ, and what must agree."""
