"""Real Linux in virtual time: one User-Mode Linux guest per point.

checks.py    checks of a spec for guests
command.py   the command line and the first script of a guest
cpus.py      a CPU of its own for each guest
engine.py    the engine itself: one guest per point, without root
guest.py     one guest: a process that runs a program under its own kernel
landlock.py  a process that takes rights to write from itself
launch.py    the parent of a guest: starts it with few rights, and leaves nothing of it
memory.py    memory of a guest
shell.py     `refabric shell --engine linux`
watch.py     watch over a running guest
kernel/      the guest's kernel

May import `common`, `topos`, `model`, `engines.core_setup`, `engines.engine`, `engines.kernel_hosts` and
`engines.provenance`.
"""
