"""Generic netlink: the family registry (net/netlink/genetlink.c) and message framing."""

from __future__ import annotations

import errno
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from engines.emulation.kernel import netlink

GENL_ID_CTRL = 0x10
CTRL_CMD_GETFAMILY = 3
CTRL_ATTR_FAMILY_ID = 1
CTRL_ATTR_FAMILY_NAME = 2
CTRL_ATTR_OPS = 6
CTRL_ATTR_MCAST_GROUPS = 7
CTRL_ATTR_OP_ID = 1
CTRL_ATTR_MCAST_GRP_NAME = 1
CTRL_ATTR_MCAST_GRP_ID = 2

HEADER_BYTES = 4


@dataclass(frozen=True)
class Family:
    """A generic netlink family; its ids are identical in all namespaces until reboot."""

    name: str
    kind: int
    groups: Mapping[str, int]
    commands: frozenset[int]


def frame(command: int, version: int, *attrs: bytes) -> bytes:
    """Return the payload of a generic netlink message: struct genlmsghdr and attributes."""
    return struct.pack("=BBH", command, version, 0) + b"".join(attrs)


def parse(payload: bytes) -> tuple[int, dict[int, bytes]]:
    """Return command and attributes of a generic netlink payload. Raises ValueError if it is truncated."""
    if len(payload) < HEADER_BYTES:
        raise ValueError(f"generic netlink payload of {len(payload)} bytes")
    return payload[0], netlink.parse_attrs(payload, HEADER_BYTES)


def parse_family(name: str, payload: bytes) -> Family:
    """Decode the answer to CTRL_CMD_GETFAMILY. Raises ValueError if it is truncated."""
    _, attrs = parse(payload)
    groups = {}
    for entry in netlink.parse_attrs(attrs.get(CTRL_ATTR_MCAST_GROUPS, b"")).values():
        group = netlink.parse_attrs(entry)
        label = group.get(CTRL_ATTR_MCAST_GRP_NAME, b"").rstrip(b"\0").decode(errors="replace")
        groups[label] = netlink.u32(group, CTRL_ATTR_MCAST_GRP_ID)
    operations = netlink.parse_attrs(attrs.get(CTRL_ATTR_OPS, b"")).values()
    commands = frozenset(netlink.u32(netlink.parse_attrs(entry), CTRL_ATTR_OP_ID) for entry in operations)
    kind = int.from_bytes(attrs.get(CTRL_ATTR_FAMILY_ID, b""), sys.byteorder)
    return Family(name, kind, groups, commands)


def resolve(name: str, timeout_s: float = 5.0) -> Family | None:
    """Look up a family by name; None if this kernel does not have it."""
    query = frame(CTRL_CMD_GETFAMILY, 1, netlink.attr(CTRL_ATTR_FAMILY_NAME, name.encode() + b"\0"))
    with netlink.NetlinkSocket(netlink.NETLINK_GENERIC, timeout_s) as sock:
        try:
            answer = sock.request(GENL_ID_CTRL, query)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise
    return parse_family(name, answer[0].payload)
