"""Charts of validation: laws of TCP and conservation of packets."""
