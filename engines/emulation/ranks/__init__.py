"""Ranks on the packets of real hosts, and minTCP's view of losses: BPF programs on the hosts' interfaces.

programs.py  the programs on the hosts' interfaces
support.py   whether this machine can stamp ranks
bpf/         their sources

May import `common`, `topos`, `model` and `engines.emulation`.
"""
