"""Kernel interfaces, one file each."""
