"""Choice of Open vSwitch's datapath, in the kernel or in user space, by trying to make one."""

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
    def words(self) -> str:
        return "the kernel's datapath" if self is Datapath.KERNEL else "the user-space datapath (netdev)"


def choose(asked: str) -> Datapath:
    """Return the datapath for a run in this process's namespaces, by a name of model/openflow.py.

    Raises HostUnfitError if it is not available.
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
    """Return why the kernel makes no datapath; empty if it does. Trying also loads the module."""
    try:
        command("ovs-dpctl", "add-dp", _PROBE)
        command("ovs-dpctl", "del-dp", _PROBE)
    except CommandError as error:
        return str(error).rpartition(": ")[2]
    return ""
