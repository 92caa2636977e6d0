"""Messages in OpenFlow 1.0 (specification 1.0.0, section 5), for POX.

OpenFlow 1.0 has no groups, so a Choice is rejected. The encoder is our own, so that POX needs only the
standard library and numpy beside it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Any

from common.errors import UsageError
from controllers.openflow.messages import (
    ARP_PRIORITY,
    ETHERTYPE_ARP,
    ETHERTYPE_IPV4,
    PUNT_PRIORITY,
    Barrier,
    Clear,
    Install,
    Message,
    Punt,
    Remove,
    Send,
)
from controllers.rules import Choice, Match

VERSION = 1
LAST_PORT = 0xFF00
"""OFPP_MAX: higher numbers are reserved ports."""
_PACKET_OUT, _FLOW_MOD, _BARRIER_REQUEST = 13, 14, 18
_ADD, _DELETE, _DELETE_STRICT = 0, 3, 4
_CONTROLLER, _NONE = 0xFFFD, 0xFFFF
_NO_BUFFER = 0xFFFFFFFF
_SEND_FLOW_REMOVED = 1
_WHOLE_FRAME = 0xFFFF

_ALL = 0x3FFFFF
_ETHERTYPE, _PROTO, _SPORT, _DPORT = 1 << 4, 1 << 5, 1 << 6, 1 << 7
_SRC_SHIFT, _DST_SHIFT = 8, 14
NO_GROUPS = "encoding for OpenFlow 1.0: it has no groups, so switches cannot choose among equal paths"
_MATCH = struct.Struct("!IH6s6sHBxHBBxx4s4sHH")


def encode(message: Message) -> bytes:
    """Return the bytes of one message. Raises UsageError for a group."""
    encoders: dict[type, Callable[[Any], bytes]] = {
        Clear: lambda _: _flow_mod(_match(), _DELETE, 0),
        Install: _install,
        Remove: lambda m: _flow_mod(match_bytes(m.match), _DELETE_STRICT, m.priority),
        Punt: _punt,
        Send: _send,
        Barrier: lambda m: _message(_BARRIER_REQUEST, b"", m.number),
    }
    if type(message) not in encoders:
        raise UsageError(NO_GROUPS)
    return encoders[type(message)](message)


def match_bytes(match: Match) -> bytes:
    """Return the 40 bytes of an ofp_match."""
    wildcards = _ALL & ~_ETHERTYPE & ~(0x3F << _DST_SHIFT) | 32 - match.bits << _DST_SHIFT
    if match.src is not None:
        wildcards &= ~(0x3F << _SRC_SHIFT)
    for field, bit in ((match.proto, _PROTO), (match.sport, _SPORT), (match.dport, _DPORT)):
        if field is not None:
            wildcards &= ~bit
    return _match(wildcards, ETHERTYPE_IPV4, match)


def _match(wildcards: int = _ALL, ethertype: int = 0, match: Match | None = None) -> bytes:
    nothing = (0, bytes(6), bytes(6), 0, 0)  # port, MACs and VLAN are never matched
    if match is None:
        return _MATCH.pack(wildcards, *nothing, ethertype, 0, 0, bytes(4), bytes(4), 0, 0)
    src = IPv4Address(match.src or 0).packed
    dst = IPv4Address(match.dst).packed
    ports = match.sport or 0, match.dport or 0
    return _MATCH.pack(wildcards, *nothing, ethertype, 0, match.proto or 0, src, dst, *ports)


def _message(kind: int, body: bytes, number: int = 0) -> bytes:
    return struct.pack("!BBHI", VERSION, kind, 8 + len(body), number) + body


def _flow_mod(
    match: bytes, command: int, priority: int, actions: bytes = b"", idle_s: int = 0, flags: int = 0
) -> bytes:
    body = struct.pack("!QHHHHIHH", 0, command, idle_s, 0, priority, _NO_BUFFER, _NONE, flags)
    return _message(_FLOW_MOD, match + body + actions)


def _output(port: int, most: int = 0) -> bytes:
    return struct.pack("!HHHH", 0, 8, port, most)


def _install(message: Install) -> bytes:
    if isinstance(message.to, Choice):
        raise UsageError(NO_GROUPS)
    actions = b"" if message.to is None else _output(message.to)
    flags = _SEND_FLOW_REMOVED if message.notify else 0
    return _flow_mod(match_bytes(message.match), _ADD, message.priority, actions, message.idle_s, flags)


def _punt(message: Punt) -> bytes:
    ethertype, priority = (ETHERTYPE_ARP, ARP_PRIORITY) if message.arp else (ETHERTYPE_IPV4, PUNT_PRIORITY)
    return _flow_mod(
        _match(_ALL & ~_ETHERTYPE, ethertype), _ADD, priority, _output(_CONTROLLER, _WHOLE_FRAME)
    )


def _send(message: Send) -> bytes:
    out = _output(message.port)
    body = struct.pack("!IHH", _NO_BUFFER, _NONE, len(out))
    return _message(_PACKET_OUT, body + out + message.frame)
