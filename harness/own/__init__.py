"""Experiments from a user's file: `refabric run ./mine.py`."""
