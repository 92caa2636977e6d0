"""Kernel interfaces, one file each: netlink, sockets, interfaces, counters, namespaces.

cpu.py             CPU use of the machine
genetlink.py       generic netlink
netlink.py         netlink: messages, attributes, sockets
netns.py           run code inside the network namespaces of hosts
netstat.py         counters of TCP and MPTCP
offload.py         ethtool's feature switches by ioctl
process.py         the state of a process
queue_counters.py  counters of shaped interfaces
rtnl.py            interfaces, addresses and routes
shaping.py         rate, queue and delay of an interface
sock_diag.py       state of the hosts' TCP and MPTCP sockets

May import `common`, `fabric`, `topos`, `model`, `engines.emulation` and `engines.kernel_hosts`.
"""
