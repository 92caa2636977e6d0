"""Kernel interfaces, one file each: netlink, sockets, network interfaces, counters, namespaces."""
