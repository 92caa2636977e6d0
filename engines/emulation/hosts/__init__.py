"""Hosts, their processes and tuning, and the Mininet network that holds them."""
