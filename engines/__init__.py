"""Engines turn a RunSpec into a RunResult; `engine.py` is the protocol they share."""
