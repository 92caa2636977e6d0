"""Kernel interfaces, one file each: netlink, sockets, interfaces, counters, namespaces."""
