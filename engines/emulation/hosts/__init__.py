"""Hosts: namespaces, processes, kernel settings, and the Mininet network that holds them."""
