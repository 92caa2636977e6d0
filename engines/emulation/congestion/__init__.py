"""refabric's congestion controls as BPF struct_ops, registered with the kernel while a run lasts.

`bpf/` holds the sources, one file per algorithm; setup/install.sh compiles them into `objects/`.
`registration` loads and registers them, `support` checks this machine, and `libbpf` is the binding.
docs/congestion.md explains the mechanism and its requirements.
"""
