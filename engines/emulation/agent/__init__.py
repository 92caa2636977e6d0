"""The agent of a congestion control plane beside real hosts: its datapath in the kernel and its process.

built_in.py  the interface to the datapath in the guests' kernel
channel.py   the interface between an agent's process and a datapath
datapath.py  the datapath under an agent during a run
maps.py      the datapath's BPF maps
process.py   the agent's process, which ends with the run

May import `common`, `ccp`, `model`, `engines.core_setup` and `engines.emulation`.
"""
