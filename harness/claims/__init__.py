"""Metrics, published numbers, and verdicts on them from stored points."""
