"""Measurements during a run, the result made of them, and its verdict."""
