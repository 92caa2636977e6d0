"""Metrics, published numbers, and summary.csv, the table of all points."""
