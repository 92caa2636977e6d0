"""Measurements during a run, and the rows and tables made from them."""
