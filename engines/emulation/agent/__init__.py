"""The agent of a congestion control plane beside real hosts: its datapath in the kernel and its process."""
