"""Decide whether the machine disturbed a run, and what caused it."""
