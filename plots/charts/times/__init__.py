"""Charts of completion times."""
