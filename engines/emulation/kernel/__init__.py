"""One file per kernel interface: netlink, sockets, interfaces, counters, namespaces."""
