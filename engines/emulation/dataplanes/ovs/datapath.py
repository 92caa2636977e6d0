"""Which datapath Open vSwitch has here: the kernel's, or its own in user space. Found by making one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from common.errors import CommandError, HostUnfitError
from engines.emulation.dataplanes.ovs.daemons import command

_PROBE = "refabric"
_TUN = Path("/dev/net/tun")


class Datapath(StrEnum):
    """`datapath_type` of a bridge (ovs-vswitchd.conf.db(5))."""

    KERNEL = "system"
    USER = "netdev"

    @property
    def told(self) -> str:
        return "the kernel's datapath" if self is Datapath.KERNEL else "the user-space datapath (netdev)"


def choose(asked: str) -> Datapath:
    """The datapath for a run in the calling process's namespaces, by a name of model/openflow.py.

    Raises HostUnfitError for one that is not to be had.
    """
    failure = "" if asked == "user" else _kernel_refuses()
    if asked != "user" and not failure:
        return Datapath.KERNEL
    if asked == "kernel":
        raise HostUnfitError(
            f"the kernel has no Open vSwitch datapath ({failure}): run: modprobe openvswitch, or choose "
            "--datapath user"
        )
    if not _TUN.exists():
        raise HostUnfitError(f"Open vSwitch's user-space datapath needs {_TUN}: run: modprobe tun")
    return Datapath.USER


def _kernel_refuses() -> str:
    """Why; nothing when it does not. Asking also loads the module, where there is one."""
    try:
        command("ovs-dpctl", "add-dp", _PROBE)
        command("ovs-dpctl", "del-dp", _PROBE)
    except CommandError as error:
        return str(error).rpartition(": ")[2]
    return ""
