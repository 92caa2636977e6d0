"""Changes that make TCP behave as on other machines: the timer's frequency and our congestion controls."""

from __future__ import annotations

from engines.linux.kernel.edits.edit import Edit, after

EDITS = (
    Edit(
        "arch/um/Kconfig",
        "timers of 4 ms, as on the kernels of distributions; User-Mode Linux has 10 ms",
        "config HZ\n\tint\n\tdefault 100\n",
        "config HZ\n\tint\n\tdefault 250\n",
    ),
    after(
        "net/Makefile",
        "coupled congestion controls: BPF cannot add them where BPF programs are not compiled",
        "obj-$(CONFIG_MPTCP)\t\t+= mptcp/\n",
        "obj-$(CONFIG_MPTCP)\t\t+= refabric/\n",
    ),
)
