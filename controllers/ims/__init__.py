"""Scaling of an IMS's functions: when to add an instance, and when to drain one. Pure."""
