"""Receive packet steering: the hosts' TCP runs on other CPUs than the fabric's thread.

Without it the receiving host's whole stack runs inside the fabric's system calls, on the fabric's CPU
(Documentation/networking/scaling.rst). Linux >= 6.3 takes a default mask per namespace before a device
exists; older kernels want the mask written into each device's folder in that namespace's own sysfs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from engines.emulation.hosts import in_threads
from engines.emulation.mounts import CLONE_NEWNS, MS_NODEV, MS_NOSUID, mount, unshare
from engines.emulation.netns import enter_netns, sysctl_path
from fabric.errors import RunError

DEFAULT_MASK = "net.core.rps_default_mask"


def sysctls(mask: str) -> Mapping[str, str]:
    """What to set in a host's namespace before it has a NIC; empty where the kernel has no such thing."""
    return {DEFAULT_MASK: mask} if mask and sysctl_path(DEFAULT_MASK).exists() else {}


def steer(pids: Sequence[int], mask: str) -> None:
    """Write `mask` (hexadecimal) to every receive queue of the NICs in the namespaces of `pids`.

    Raises RunError when a namespace's sysfs cannot be written.
    """

    def write(pid: int) -> None:
        unshare(CLONE_NEWNS)
        enter_netns(pid)
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV)
        try:
            for queue in Path("/sys/class/net").glob("*-eth*/queues/rx-*/rps_cpus"):
                queue.write_text(mask)
        except OSError as error:
            raise RunError(f"steering received packets of pid {pid} to CPUs {mask}: {error}") from error

    in_threads(write, pids)
