"""The generic netlink family `mptcp_pm`: events, commands, and what this kernel supports.

Sources: include/uapi/linux/mptcp_pm.h (mptcp.h before 6.7), Documentation/netlink/specs/mptcp_pm.yaml,
net/mptcp/pm_netlink.c, net/mptcp/pm_userspace.c. Ports in events are big endian, ports in commands
are in host order; tokens are opaque 32-bit numbers in host order.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from dataclasses import dataclass
from enum import Enum, IntEnum

from engines.emulation.kernel import netlink
from engines.emulation.kernel.namespaces import sysctl_path
from model.flows import AddressPair

FAMILY_NAME = "mptcp_pm"
EVENT_GROUP = "mptcp_pm_events"
VERSION = 1
IPPROTO_MPTCP = 262

SYSCTL_BY_NAME = "net.mptcp.path_manager"
SYSCTL_BY_NUMBER = "net.mptcp.pm_type"

# No MPTCP options are stripped here, so a lost SYN does not indicate a middlebox. By default Linux >= 6.12
# disables MPTCP for the whole namespace after 2 lost SYNs (net/mptcp/ctrl.c).
RESILIENCE_SYSCTLS = {
    "net.mptcp.blackhole_timeout": "0",
    "net.mptcp.syn_retrans_before_tcp_fallback": "128",
}

CMD_ADD_ADDR = 1
CMD_FLUSH_ADDRS = 4
CMD_SET_LIMITS = 5
CMD_SUBFLOW_CREATE = 10
CMD_SUBFLOW_DESTROY = 11

ATTR_ADDR = 1
ATTR_RCV_ADD_ADDRS = 2
ATTR_SUBFLOWS = 3
ATTR_TOKEN = 4
ATTR_ADDR_REMOTE = 6

ADDR_FAMILY = 1
ADDR_ID = 2
ADDR_V4 = 3
ADDR_V6 = 4
ADDR_PORT = 5
ADDR_FLAGS = 6
ADDR_FLAG_SIGNAL = 1

EVENT_TOKEN = 1
EVENT_LOC_ID = 3
EVENT_SADDR4 = 5
EVENT_SADDR6 = 6
EVENT_DADDR4 = 7
EVENT_DADDR6 = 8
EVENT_SPORT = 9
EVENT_DPORT = 10
EVENT_ERROR = 12
EVENT_FLAGS = 13
EVENT_SERVER_SIDE = 18
EVENT_FLAG_SERVER_SIDE = 1 << 1


class EventKind(IntEnum):
    """The kinds of enum mptcp_event_type that the path managers here use."""

    CREATED = 1
    ESTABLISHED = 2
    CLOSED = 3
    SUB_ESTABLISHED = 10
    SUB_CLOSED = 11


@dataclass(frozen=True, slots=True)
class MptcpEvent:
    """An event as the owner of `token` receives it; `path` is empty for CLOSED.

    `error` is an errno or 0; `server_side` is only set for connections.
    """

    kind: EventKind
    token: int
    path: AddressPair
    server_side: bool
    local_id: int
    error: int


def parse_event(payload: bytes) -> MptcpEvent | None:
    """Decode one event; None for other kinds (listeners, announcements, priorities).

    Raises ValueError if it is truncated.
    """
    command, attrs = netlink.parse_genl(payload)
    if command not in EventKind.__members__.values():
        return None
    flags = int.from_bytes(attrs.get(EVENT_FLAGS, b""), sys.byteorder)
    path = AddressPair(
        _address(attrs.get(EVENT_SADDR4) or attrs.get(EVENT_SADDR6, b"")),
        int.from_bytes(attrs.get(EVENT_SPORT, b""), "big"),
        _address(attrs.get(EVENT_DADDR4) or attrs.get(EVENT_DADDR6, b"")),
        int.from_bytes(attrs.get(EVENT_DPORT, b""), "big"),
    )
    return MptcpEvent(
        kind=EventKind(command),
        token=netlink.u32(attrs, EVENT_TOKEN),
        path=path,
        server_side=attrs.get(EVENT_SERVER_SIDE, b"\0") != b"\0" or bool(flags & EVENT_FLAG_SERVER_SIDE),
        local_id=int.from_bytes(attrs.get(EVENT_LOC_ID, b"")[:1], "big"),
        error=int.from_bytes(attrs.get(EVENT_ERROR, b"")[:1], "big"),
    )


def _address(packed: bytes) -> str:
    if not packed:
        return ""
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def address_attr(kind: int, ip: str, port: int = 0, address_id: int = 0, flags: int = 0) -> bytes:
    """Return a nested endpoint address; port, id and flags are omitted if 0."""
    address = ipaddress.ip_address(ip)
    v4 = address.version == 4
    family = socket.AF_INET if v4 else socket.AF_INET6
    parts = [
        netlink.attr(ADDR_FAMILY, struct.pack("=H", family)),
        netlink.attr(ADDR_V4 if v4 else ADDR_V6, address.packed),
    ]
    if address_id:
        parts.append(netlink.attr(ADDR_ID, bytes([address_id])))
    if port:
        parts.append(netlink.attr(ADDR_PORT, struct.pack("=H", port)))
    if flags:
        parts.append(netlink.attr(ADDR_FLAGS, struct.pack("=I", flags)))
    return netlink.nested(kind, *parts)


def subflow_create(token: int, path: AddressPair, local_id: int) -> bytes:
    """Return an MPTCP_PM_CMD_SUBFLOW_CREATE message. `local_id` is 1..255 and must be new for every local
    (address, port); otherwise the kernel returns EINVAL "did not match address and id"."""
    return netlink.genl_message(
        CMD_SUBFLOW_CREATE,
        VERSION,
        netlink.attr(ATTR_TOKEN, struct.pack("=I", token)),
        address_attr(ATTR_ADDR, path.laddr, path.lport, local_id),
        address_attr(ATTR_ADDR_REMOTE, path.raddr, path.rport),
    )


def subflow_destroy(token: int, path: AddressPair) -> bytes:
    """Return an MPTCP_PM_CMD_SUBFLOW_DESTROY message. The kernel returns ESRCH where the connection has no
    subflow with these addresses and ports."""
    return netlink.genl_message(
        CMD_SUBFLOW_DESTROY,
        VERSION,
        netlink.attr(ATTR_TOKEN, struct.pack("=I", token)),
        address_attr(ATTR_ADDR, path.laddr, path.lport),
        address_attr(ATTR_ADDR_REMOTE, path.raddr, path.rport),
    )


class PathManagement(Enum):
    """How this kernel can open further subflows."""

    NONE = "no MPTCP"
    IN_KERNEL = "in-kernel path manager only"
    USERSPACE = "userspace path manager"


@dataclass(frozen=True)
class MptcpSupport:
    """MPTCP support of the running kernel. `sysctl` is the (name, value) that selects the userspace path
    manager; `advice` says what is missing and what to do, and is empty if nothing is missing."""

    level: PathManagement
    sysctl: tuple[str, str] | None
    advice: str


def support() -> MptcpSupport:
    """Probe the kernel in the calling thread's namespace; changes nothing and needs no root."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        return classify(error.strerror or str(error), None, None)
    return classify("", netlink.resolve_family(FAMILY_NAME), userspace_sysctl())


def classify(refusal: str, family: netlink.GenlFamily | None, sysctl: tuple[str, str] | None) -> MptcpSupport:
    """Classify probe results: `refusal` is why no MPTCP socket could be opened, empty if one could."""
    if refusal:
        advice = (
            f"this kernel cannot open MPTCP sockets ({refusal}); run `sysctl net.mptcp.enabled=1`, or "
            "install a kernel >= 5.19 built with CONFIG_MPTCP (Ubuntu 22.04: linux-generic-hwe-22.04)"
        )
        return MptcpSupport(PathManagement.NONE, None, advice)
    if family is None or CMD_SUBFLOW_CREATE not in family.commands or sysctl is None:
        advice = (
            "this kernel has MPTCP but no userspace path manager (Linux < 5.19): at most 9 subflows; "
            "for more, install a newer kernel (Ubuntu 22.04: linux-generic-hwe-22.04)"
        )
        return MptcpSupport(PathManagement.IN_KERNEL, None, advice)
    return MptcpSupport(PathManagement.USERSPACE, sysctl, "")


def userspace_sysctl() -> tuple[str, str] | None:
    """Return the sysctl that selects the userspace path manager, or None.

    It is `path_manager` since 6.15, and `pm_type` since 5.19 (deprecated, still present in 6.18).
    """
    for name, value in ((SYSCTL_BY_NAME, "userspace"), (SYSCTL_BY_NUMBER, "1")):
        if sysctl_path(name).exists():
            return name, value
    return None


def resilience_sysctls() -> dict[str, str]:
    """Return those RESILIENCE_SYSCTLS that this kernel has."""
    return {name: value for name, value in RESILIENCE_SYSCTLS.items() if sysctl_path(name).exists()}
