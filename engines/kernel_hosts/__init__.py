"""Shared by the engines whose hosts have a Linux kernel: checks of a spec, deadlines, messages, results.

checks.py        checks of a spec for hosts with a Linux kernel
deadlines.py     how long connecting and a whole point may take
kernel_stack.py  settings of a stack that a Linux kernel can follow
outcome.py       messages of the program that runs the hosts
sample_memory.py memory of a point's samples
shell_spec.py    the network of `refabric shell`
wire.py          a RunResult as JSON messages

May import `common`, `topos`, `controllers`, `model` and `engines.engine`.
"""
