"""Congestion control in BPF: algorithms, ranks on packets, and the datapath under an agent.

`bpf/` has the sources; setup/install.sh compiles them into `objects/`. How it works: docs/congestion.md."""
