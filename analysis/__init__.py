"""Readings of results: pure functions of rows and samples."""
