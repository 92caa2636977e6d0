"""Charts of the validation: laws of TCP, and conservation of packets."""
