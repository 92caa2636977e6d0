"""Congestion controls as BPF struct_ops, registered with the kernel for the duration of a run.

`bpf/` holds the sources, one file per algorithm; setup/install.sh compiles them into `objects/`.
`registration` loads and registers them, `support` reports whether this machine can, `libbpf` is the binding.
How it works and what it needs: docs/congestion.md.
"""
