"""Execution of points: in this process, in worker processes, on a cluster."""
