"""Congestion controls as BPF struct_ops, registered with the kernel for the duration of a run.

registration.py  load and register them during a run
support.py       whether this machine can
libbpf.py        a minimal binding of libbpf
built_in.py      congestion controls that are built into the kernel
bpf/             the sources, one file per algorithm; setup/install.sh compiles them into `objects/`

How it works and what it needs: docs/congestion.md.

May import `common`, `model` and `engines.emulation`.
"""
