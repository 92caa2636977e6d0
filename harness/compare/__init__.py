"""Comparison of two results folders."""
