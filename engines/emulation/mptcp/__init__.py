"""The kernel's MPTCP: its netlink family, the events of connections, and path managers."""
