"""Kernel MPTCP: its netlink family, connection events and path managers.

mptcp_genl.py             the generic netlink family `mptcp_pm`
mptcp_watch.py            follow the connections of many hosts
path_manager.py           a userspace path manager: subflows on chosen paths
path_manager_inkernel.py  subflows on kernels 5.6 to 5.18

May import `common`, `model` and `engines.emulation`.
"""
