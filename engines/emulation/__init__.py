"""Real hosts: the machine's own TCP and MPTCP between network namespaces, in real time. Needs root.

sandbox/      the private namespaces of a run
kernel/       one file per kernel interface
hosts/        hosts, their processes and settings
dataplanes/   what carries frames between hosts
traffic/      programs that send and receive
mptcp/        MPTCP's netlink family and path managers
congestion/   congestion controls as BPF programs
measure/      what is read during a run
verdict/      whether the machine disturbed the numbers
calibration/  the link rate that the machine carries

May import the packages to the left of `engines` (docs/architecture.md), and no other engine.
"""
