"""Measurements of a running point, and their conversion to rows and tables."""
