"""Points of a sweep on the workers of a Dask cluster."""
