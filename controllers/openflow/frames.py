"""Ethernet frames that reach a controller: IPv4 packets to be routed, ARP requests to be answered.

Frame formats: IEEE 802.3, RFC 791 (IPv4), RFC 826 (ARP).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from controllers.hashing import FiveTuple
from controllers.rules import has_ports

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
