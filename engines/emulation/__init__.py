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
engine.py     the engine itself: one RunSpec at a time
machine.py    what this machine's kernel can do
memory.py     estimate of a point's memory
point.py      one point inside its private namespaces
agent/        the agent of a congestion control plane, and its datapath
ims/          a real IMS: Kamailio, SIPp and redis
ranks/        ranks on packets, and minTCP's view of losses

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis`,
`engines.core_setup`, `engines.engine`, `engines.ims`, `engines.kernel_hosts`, `engines.provenance` and
`engines.scheduling`.
"""
