"""A real IMS: Kamailio, SIPp and redis in the run's own namespaces (docs/experiments/ims.md).

checks.py      checks before anything is started
point.py       a point about SIP calls, inside private namespaces
scheduling.py  how the kernel schedules the programs
servers.py     Kamailio and redis on emulated hosts
support.py     whether the programs are here, and their installation
system.py      a real IMS behind the interface that both engines use
users.py       SIPp on the users' host
verdict.py     reasons to doubt the numbers
files/         configurations of Kamailio, scenarios of SIPp

May import `common`, `fabric`, `topos`, `workloads`, `model`, `engines.emulation`, `engines.ims` and
`engines.kernel_hosts`.
"""
