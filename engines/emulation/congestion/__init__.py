"""Congestion controls of our own, as BPF struct_ops, registered with the kernel for the life of a run.

`bpf/` holds the sources, one file an algorithm; setup/install.sh compiles them into `objects/`.
`registration` loads and registers, `support` says whether this machine can, and `libbpf` is the binding.
How it works and what it needs: docs/congestion.md.
"""
