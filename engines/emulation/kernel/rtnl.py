"""Interfaces, addresses, routes and offloads: the rtnetlink(7) messages and ioctls that hosts need.

Each function sends one request on an open NETLINK_ROUTE socket and acts in that socket's namespace. This
takes about 20 us, a process of ip(8) takes 3 ms. Functions raise OSError with the kernel's text. Sources:
include/uapi/linux/rtnetlink.h, if_link.h.

ethtool's feature switches by ioctl, one call per interface instead of one process of ethtool(8). Source:
include/uapi/linux/ethtool.h, struct ethtool_sfeatures; net/ethtool/ioctl.c.
"""

from __future__ import annotations

import array
import fcntl
import functools
import socket
import struct
from dataclasses import dataclass

from engines.emulation.kernel.netlink import NLM_F_ACK, NetlinkSocket, attr, nested
from engines.kernel_hosts import RouteMetrics

NETLINK_ROUTE = 0
_CREATE, _EXCL, _REPLACE = 0x400, 0x200, 0x100
_NEWLINK, _DELLINK, _NEWADDR, _NEWROUTE, _NEWNEIGH, _NEWRULE = 16, 17, 20, 24, 28, 32
_IFF_UP = 1
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_NET_NS_PID, _IFLA_GROUP = 1, 3, 4, 18, 19, 27
_IFLA_NUM_TX_QUEUES, _IFLA_NUM_RX_QUEUES, _IFLA_GSO_MAX_SEGS = 31, 32, 40
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC, _RTA_METRICS, _RTA_TABLE = 4, 5, 7, 8, 15
_RTAX_LOCK, _RTAX_INITCWND, _RTAX_RTO_MIN, _RTAX_QUICKACK = 1, 11, 13, 15
_RTNH_F_ONLINK = 4
_RTPROT_BOOT, _RT_SCOPE_UNIVERSE, _RT_SCOPE_LINK, _RTN_UNICAST, RT_TABLE_MAIN = 3, 0, 253, 1, 254
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80
_FRA_SRC, _FRA_PRIORITY, _FRA_TABLE, _FR_ACT_TO_TBL = 2, 6, 15, 1

LINK_EVENTS = 1
"""Multicast group of changes of interfaces (RTNLGRP_LINK)."""
LOOPBACK = 1
"""Interface index of `lo` in every network namespace."""


@dataclass(frozen=True)
class Veth:
    """A veth pair to create: our end, and the peer's end in the namespace of process `peer_pid`."""

    name: str
    peer: str
    peer_pid: int
    peer_mac: str
    group: int
    mtu: int = 1500
    gso_max_segs: int = 0
    """Maximum number of segments in a GSO packet of either end; 0 keeps the kernel's default."""


def route_socket() -> NetlinkSocket:
    """Return a socket in the calling thread's namespace; the RTNL lock may be busy for seconds at k=16."""
    return NetlinkSocket(NETLINK_ROUTE, timeout_s=20.0)


def add_veth(sock: NetlinkSocket, veth: Veth) -> None:
    """Create both ends, ours already up, with one queue each."""
    shape = attr(_IFLA_MTU, _u32(veth.mtu)) + attr(_IFLA_NUM_TX_QUEUES, _u32(1))
    shape += attr(_IFLA_NUM_RX_QUEUES, _u32(1))
    if veth.gso_max_segs:
        shape += attr(_IFLA_GSO_MAX_SEGS, _u32(veth.gso_max_segs))
    peer = _ifinfo(0, 0) + _name(veth.peer) + attr(_IFLA_ADDRESS, _mac(veth.peer_mac)) + shape
    peer += attr(_IFLA_NET_NS_PID, _u32(veth.peer_pid))
    info = nested(_IFLA_LINKINFO, attr(_INFO_KIND, b"veth"), nested(_INFO_DATA, attr(_VETH_PEER, peer)))
    ours = _ifinfo(0, _IFF_UP) + _name(veth.name) + shape + attr(_IFLA_GROUP, _u32(veth.group)) + info
    sock.request(_NEWLINK, ours, NLM_F_ACK | _CREATE | _EXCL)


def set_up(sock: NetlinkSocket, ifindex: int, up: bool = True) -> None:
    header = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, ifindex, _IFF_UP if up else 0, _IFF_UP)
    sock.request(_NEWLINK, header, NLM_F_ACK)


def taken_up(events: NetlinkSocket) -> list[int]:
    """Return the interfaces (indices) that were taken up since the last call; `events` has joined
    LINK_EVENTS. Raises OSError(ENOBUFS) if the kernel dropped events."""
    found = []
    while messages := events.receive():
        for message in messages:
            if message.kind == _NEWLINK:
                ifindex, flags, changed = struct.unpack_from("=4xiII", message.payload)
                if flags & changed & _IFF_UP:
                    found.append(ifindex)
    return found


def delete_group(sock: NetlinkSocket, group: int) -> None:
    """Delete all interfaces of a group and their veth peers at once, in one RCU grace period."""
    sock.request(_DELLINK, _ifinfo(0, 0) + attr(_IFLA_GROUP, _u32(group)), NLM_F_ACK)


def add_address(sock: NetlinkSocket, ifindex: int, ip: str) -> None:
    """Add the address `ip`/32; without a subnet route no destination is resolved by ARP."""
    header = struct.pack("=BBBBI", socket.AF_INET, 32, 0, _RT_SCOPE_UNIVERSE, ifindex)
    address = socket.inet_aton(ip)
    payload = header + attr(_IFA_LOCAL, address) + attr(_IFA_ADDRESS, address)
    sock.request(_NEWADDR, payload, NLM_F_ACK | _CREATE | _EXCL)


def add_neighbour(sock: NetlinkSocket, ifindex: int, ip: str, mac: str) -> None:
    """Add a permanent ARP entry."""
    header = struct.pack("=BxxxiHBB", socket.AF_INET, ifindex, _NUD_PERMANENT, 0, 0)
    payload = header + attr(_NDA_DST, socket.inet_aton(ip)) + attr(_NDA_LLADDR, _mac(mac))
    sock.request(_NEWNEIGH, payload, NLM_F_ACK | _CREATE | _REPLACE)


def add_default_route(
    sock: NetlinkSocket, ifindex: int, gateway: str, source: str, table: int, metrics: RouteMetrics
) -> None:
    """Add the route `default via gateway dev ifindex src source onlink table table`, with `metrics`."""
    fields = (socket.AF_INET, 0, 0, 0, 0)  # the table is in RTA_TABLE
    kind = (_RTPROT_BOOT, _RT_SCOPE_UNIVERSE, _RTN_UNICAST, _RTNH_F_ONLINK)
    payload = struct.pack("=BBBBBBBBI", *fields, *kind) + attr(_RTA_OIF, _u32(ifindex))
    payload += attr(_RTA_GATEWAY, socket.inet_aton(gateway)) + attr(_RTA_PREFSRC, socket.inet_aton(source))
    payload += _metrics(metrics)
    sock.request(_NEWROUTE, payload + attr(_RTA_TABLE, _u32(table)), NLM_F_ACK | _CREATE | _REPLACE)


def add_link_route(sock: NetlinkSocket, ifindex: int, source: str, table: int, metrics: RouteMetrics) -> None:
    """Add the route `default dev ifindex scope link src source table table`: all hosts are neighbours."""
    kind = (_RTPROT_BOOT, _RT_SCOPE_LINK, _RTN_UNICAST)
    payload = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 0, *kind, 0)
    payload += attr(_RTA_OIF, _u32(ifindex)) + attr(_RTA_PREFSRC, socket.inet_aton(source))
    payload += _metrics(metrics)
    sock.request(_NEWROUTE, payload + attr(_RTA_TABLE, _u32(table)), NLM_F_ACK | _CREATE | _REPLACE)


def add_source_rule(sock: NetlinkSocket, source: str, table: int) -> None:
    """Add `rule add from source lookup table`, with priority `table`."""
    header = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 32, 0, 0, 0, 0, _FR_ACT_TO_TBL, 0)
    payload = header + attr(_FRA_SRC, socket.inet_aton(source))
    payload += attr(_FRA_PRIORITY, _u32(table)) + attr(_FRA_TABLE, _u32(table))
    sock.request(_NEWRULE, payload, NLM_F_ACK | _CREATE | _EXCL)


def _metrics(metrics: RouteMetrics) -> bytes:
    """The kernel follows the minimum RTO only if it is locked (tcp_rto_min in net/ipv4/tcp_output.c)."""
    values = {
        _RTAX_LOCK: 1 << _RTAX_RTO_MIN if metrics.rto_min_ms else 0,
        _RTAX_INITCWND: metrics.initcwnd,
        _RTAX_RTO_MIN: metrics.rto_min_ms,
        _RTAX_QUICKACK: int(metrics.quickack),
    }
    chosen = [attr(kind, _u32(value)) for kind, value in values.items() if value]
    return nested(_RTA_METRICS, *chosen) if chosen else b""


def _ifinfo(ifindex: int, flags: int) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, ifindex, flags, flags)


def _name(name: str) -> bytes:
    return attr(_IFLA_IFNAME, name.encode() + b"\0")


def _u32(value: int) -> bytes:
    return struct.pack("=I", value)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


_SIOCETHTOOL = 0x8946
_GET_STRINGS, _GET_SET_INFO, _GET_FEATURES, _SET_FEATURES = 0x1B, 0x37, 0x3A, 0x3B
_SS_FEATURES = 4
_NAME_BYTES = 32
_names_of_kernel: list[str] = []


def offloads_off(control: socket.socket, name: str, tx_checksum: bool) -> None:
    """Turn off segmentation offloads (TSO, GSO etc.) and GRO of interface `name`, so queues count packets.

    `control` is any socket in the interface's namespace. Without transmit checksum offload the stack
    computes every checksum. With it (`tx_checksum`), frames leave with partial checksums, which the data
    plane's virtio headers preserve. Raises OSError.
    """
    valid = _mask(feature_names(control, name), tx_checksum)
    request = array.array("I", (_SET_FEATURES, len(valid)))
    for block in valid:
        request.extend((block, 0))
    # A positive return value only means that veth lacks some of these features.
    _ethtool(control, name, request)


def enabled(control: socket.socket, name: str) -> frozenset[str]:
    """Return the names of the active features of interface `name`, as `ethtool -k` prints them."""
    names = feature_names(control, name)
    blocks = (len(names) + 31) // 32
    request = array.array("I", (_GET_FEATURES, blocks, *([0] * 4 * blocks)))
    _ethtool(control, name, request)
    active = [request[2 + 4 * block + 2] for block in range(blocks)]
    return frozenset(text for bit, text in enumerate(names) if active[bit // 32] >> bit % 32 & 1)


@functools.cache
def _mask(names: tuple[str, ...], tx_checksum: bool) -> tuple[int, ...]:
    blocks = [0] * ((len(names) + 31) // 32)
    for bit, name in enumerate(names):
        checksum = name.startswith("tx-checksum-") and not tx_checksum
        if name.endswith("-segmentation") or name == "rx-gro" or checksum:
            blocks[bit // 32] |= 1 << bit % 32
    return tuple(blocks)


def feature_names(control: socket.socket, name: str) -> tuple[str, ...]:
    """Return the kernel's feature names in bit order. They are equal for all interfaces, so read once."""
    if not _names_of_kernel:
        info = array.array("I", (_GET_SET_INFO, 0, 1 << _SS_FEATURES, 0, 0))
        _ethtool(control, name, info)
        header = struct.pack("=III", _GET_STRINGS, _SS_FEATURES, info[4])
        request = array.array("B", header + bytes(info[4] * _NAME_BYTES))
        _ethtool(control, name, request)
        raw = request.tobytes()[len(header) :]
        fields = (raw[i : i + _NAME_BYTES] for i in range(0, len(raw), _NAME_BYTES))
        _names_of_kernel.extend(field.split(b"\0")[0].decode() for field in fields)
    return tuple(_names_of_kernel)


def _ethtool(control: socket.socket, name: str, data: array.array[int]) -> None:
    address, _ = data.buffer_info()
    fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", name.encode(), address))
