"""Carrying points out: in this process, in worker processes, on a cluster."""
