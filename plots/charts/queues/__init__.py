"""Charts of queues, windows and round-trip times."""
