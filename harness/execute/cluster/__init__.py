"""Execution of points on the workers of a Dask cluster."""
