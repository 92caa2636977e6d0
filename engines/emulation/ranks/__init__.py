"""Ranks on the packets of real hosts, and minTCP's view of losses: BPF programs on the hosts' interfaces."""
