"""Messages to and from a switch, independent of the version of OpenFlow, and the frames that they carry.

Frame formats: IEEE 802.3, RFC 791 (IPv4), RFC 826 (ARP).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from controllers.hashing import FiveTuple
from controllers.rules import Choice, Match, has_ports

ARP_PRIORITY = 10
PUNT_PRIORITY = 1
UNKNOWN_PRIORITY = 5
TABLE_PRIORITY = 100
"""Base priority of table rules; the length of the prefix is added, so the longest prefix wins."""
EXACT_PRIORITY = 200
CHOSEN_PRIORITY = 300
"""Priority of the rules of a flow whose path an application has set."""


@dataclass(frozen=True)
class Clear:
    """Delete all rules and groups."""


@dataclass(frozen=True)
class Install:
    """Send matching packets `to` a port or a choice; None drops them.

    Replaces a rule with equal match and priority. `idle_s`: delete the rule after that time without a packet
    (0: never). `notify`: report the deletion.
    """

    match: Match
    priority: int
    to: int | Choice | None
    idle_s: int = 0
    notify: bool = False


@dataclass(frozen=True)
class Remove:
    """Delete the rule with this match and priority."""

    match: Match
    priority: int


@dataclass(frozen=True)
class SetChoice:
    """Create a choice or, if not `new`, replace the one with its number."""

    choice: Choice
    new: bool = True


@dataclass(frozen=True)
class DropChoice:
    number: int


@dataclass(frozen=True)
class Punt:
    """Send ARP, or IPv4 without a better match, to the controller."""

    arp: bool


@dataclass(frozen=True)
class Send:
    """Send a frame out of a port."""

    port: int
    frame: bytes


@dataclass(frozen=True)
class Barrier:
    """Reply with this number when all earlier messages have been processed."""

    number: int


Message = Clear | Install | Remove | SetChoice | DropChoice | Punt | Send | Barrier


@dataclass(frozen=True)
class Hello:
    """OpenFlow versions that a switch offers, as wire versions."""

    versions: frozenset[int]


@dataclass(frozen=True)
class Features:
    dpid: int


@dataclass(frozen=True)
class Ports:
    """Whether ports of a switch are up, by their numbers, except its local one; `last` is False if another
    message follows."""

    up: Mapping[int, bool]
    last: bool = True


@dataclass(frozen=True)
class PacketIn:
    port: int
    frame: bytes


@dataclass(frozen=True)
class Removed:
    match: Match
    priority: int


@dataclass(frozen=True)
class Confirmed:
    """The answer to a barrier."""

    number: int


@dataclass(frozen=True)
class Echo:
    """An echo request (`asked`), or the answer to ours."""

    asked: bool
    number: int
    data: bytes


@dataclass(frozen=True)
class RuleCount:
    match: Match
    priority: int
    packets: int
    octets: int


@dataclass(frozen=True)
class PortCounter:
    port: int
    tx_octets: int
    tx_packets: int
    tx_dropped: int


@dataclass(frozen=True)
class CounterReply:
    """The answer to a request for the counters of all rules, or of all ports."""

    number: int
    rows: tuple[RuleCount, ...] | tuple[PortCounter, ...]
    last: bool


@dataclass(frozen=True)
class Refusal:
    """An error message, as text from os-ken."""

    number: int
    what: str


Report = Hello | Features | Ports | PacketIn | Removed | Confirmed | Echo | CounterReply | Refusal


ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BxHHHxB2x4s4s")
_PORTS = struct.Struct("!HH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_ARP_IPV4 = (1, ETHERTYPE_IPV4, 6, 4)
_REQUEST, _REPLY = 1, 2


@dataclass(frozen=True)
class ArpRequest:
    """The sender's MAC and IP addresses, and the IP address that it wants to resolve."""

    mac: str
    ip: str
    wanted: str


def parse(frame: bytes) -> FiveTuple | ArpRequest | None:
    """Return the flow of an IPv4 packet, or an ARP request; None for other or truncated frames.

    Fragments other than the first have no ports. They count as a flow with ports 0, as in switches' matches.
    """
    if len(frame) < _ETHERNET.size:
        return None
    *_, ethertype = _ETHERNET.unpack_from(frame)
    body = frame[_ETHERNET.size :]
    if ethertype == ETHERTYPE_IPV4:
        return _flow(body)
    return _arp_request(body) if ethertype == ETHERTYPE_ARP else None


def _flow(packet: bytes) -> FiveTuple | None:
    if len(packet) < _IPV4.size:
        return None
    version_length, _total, _id, fragment, proto, src, dst = _IPV4.unpack_from(packet)
    header = (version_length & 0xF) * 4
    if version_length >> 4 != 4 or header < _IPV4.size:
        return None
    ports = (0, 0)
    if has_ports(proto) and not fragment & 0x1FFF:
        if len(packet) < header + _PORTS.size:
            return None
        ports = _PORTS.unpack_from(packet, header)
    return FiveTuple(str(IPv4Address(src)), str(IPv4Address(dst)), proto, *ports)


def _arp_request(packet: bytes) -> ArpRequest | None:
    if len(packet) < _ARP.size:
        return None
    *formats, operation, mac, ip, _, wanted = _ARP.unpack_from(packet)
    if tuple(formats) != _ARP_IPV4 or operation != _REQUEST:
        return None
    return ArpRequest(mac.hex(":"), str(IPv4Address(ip)), str(IPv4Address(wanted)))


def arp_reply(request: ArpRequest, mac: str) -> bytes:
    """Return the frame that answers the request: `mac` has the wanted address."""
    asking, answering = _bytes(request.mac), _bytes(mac)
    return _ETHERNET.pack(asking, answering, ETHERTYPE_ARP) + _ARP.pack(
        *_ARP_IPV4,
        _REPLY,
        answering,
        IPv4Address(request.wanted).packed,
        asking,
        IPv4Address(request.ip).packed,
    )


def _bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
