"""Kernel MPTCP: its netlink family, connection events and path managers."""
