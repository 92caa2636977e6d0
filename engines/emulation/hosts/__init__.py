"""Hosts: namespaces, processes, kernel settings, and the Mininet network that holds them.

fabric_cli.py    Mininet's CLI with support for piped commands
host_queues.py   queue disciplines in the hosts' kernels
host_sysctls.py  sysctls that a point needs on its hosts
hosts.py         namespaces, NICs, addresses and routes of hosts
iperf_pair.py    one iperf3 transfer, for the shell command `iperf`
network.py       FabricNet: a Mininet network on a data plane
nodes.py         Mininet's nodes for a fabric
processes.py     start programs on hosts, and end them by pid
shell.py         `refabric shell ft,4`
steering.py      receive packet steering

May import `common`, `topos`, `controllers`, `model`, `engines.emulation` and `engines.kernel_hosts`.
"""
