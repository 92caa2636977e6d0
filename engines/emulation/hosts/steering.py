"""Receive packet steering: run the hosts' TCP on other CPUs than the fabric's thread.

Without steering, the receiving host's whole stack runs inside the fabric's system calls, on the fabric's CPU
(Documentation/networking/scaling.rst). Linux >= 6.3 takes a default mask per namespace before a device
exists. On older kernels the mask is written for each device in that namespace's sysfs. What hosts send is
received on the fabric's CPU, whose thread reads it next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from common.errors import RunError
from engines.emulation.dataplanes.dataplane import Cpus
from engines.emulation.hosts.hosts import in_threads
from engines.emulation.kernel.netns import enter_netns, sysctl_path
from engines.emulation.sandbox.mounts import CLONE_NEWNS, MS_NODEV, MS_NOSUID, mount, unshare

DEFAULT_MASK = "net.core.rps_default_mask"


def sysctls(mask: str) -> Mapping[str, str]:
    """Return the sysctls for a host without NICs; empty if the kernel has no default mask."""
    return {DEFAULT_MASK: mask} if mask and sysctl_path(DEFAULT_MASK).exists() else {}


def steer_hosts(pids: Sequence[int], cpus: Cpus) -> None:
    """Set which CPUs receive packets for these hosts, once their NICs exist.

    The CPUs of `receive_mask` receive for most hosts; those of `core_mask` for an evenly spread
    `core_share` of them. Raises as `steer`.
    """
    at_core = [pid for number, pid in enumerate(pids) if is_chosen(number, cpus.core_share)]
    if cpus.receive_mask and not sysctls(cpus.receive_mask):
        steer(pids, cpus.receive_mask)
    if at_core:
        steer(at_core, cpus.core_mask)


def is_chosen(number: int, share: float) -> bool:
    """Return whether item `number` (from 0) belongs to an evenly spread `share` of all items."""
    return int((number + 1) * share) > int(number * share)


def steer_ends(mask: str) -> None:
    """Receive what hosts send on the CPUs of `mask`, at the run's veth ends, in the run's namespace.

    Raises RunError if sysfs cannot be written.
    """
    if not mask:
        return
    try:
        _write(mask)
    except OSError as error:
        raise RunError(f"steering packets from hosts to CPUs {mask}: {error}") from error


def _write(mask: str) -> None:
    for queue in Path("/sys/class/net").glob("*-eth*/queues/rx-*/rps_cpus"):
        queue.write_text(mask)


def steer(pids: Sequence[int], mask: str) -> None:
    """Write `mask` (hexadecimal) to every receive queue of the NICs in the namespaces of `pids`.

    Raises RunError if a namespace's sysfs cannot be written.
    """

    def write(pid: int) -> None:
        unshare(CLONE_NEWNS)
        enter_netns(pid)
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV)
        try:
            _write(mask)
        except OSError as error:
            raise RunError(f"steering received packets of pid {pid} to CPUs {mask}: {error}") from error

    in_threads(write, pids)
