"""Hosts: their namespaces, processes and tuning, and the Mininet network that contains them."""
