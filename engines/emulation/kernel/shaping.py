"""Rate, queue and delay of an interface, by the kernel's queue disciplines: HTB over a limited leaf.

    root  htb 1:        one class, 1:1, with the link's rate
    leaf  pfifo 10:     limited in packets (bfifo: in bytes; netem if there is a delay too)

HTB sends a packet as soon as the previous one is paid for, so a packet leaves when its transmission begins.
The packet in transmission is not in the leaf, whose limit is therefore one less than the queue's. Sources:
net/sched/sch_htb.c, sch_fifo.c, sch_netem.c, include/uapi/linux/pkt_sched.h. rtnetlink takes 20 us per
message, where tc(8) takes a process. Functions raise OSError with the kernel's text.

Counters of shaped interfaces come by one dump per namespace. `tc -s qdisc` for each of 640 ports takes 6 to
17 s; one dump of all takes 3 to 4 ms. Source: include/uapi/linux/{rtnetlink,pkt_sched,gen_stats}.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engines.emulation.kernel import rtnl
from engines.emulation.kernel.namespaces import CLONE_NEWNET, call_in_netns, in_threads, unshare
from engines.emulation.kernel.netlink import NLM_F_ACK, NLM_F_DUMP, NetlinkSocket, attr, parse_attrs
from fabric.plan import FRAME_BITS
from model.spec import LinkSpec
from topos.topology import Nic

_NEWQDISC, _NEWTCLASS = 36, 40
_CREATE, _REPLACE = 0x400, 0x100
_KIND, _OPTIONS = 1, 2
_ROOT, _TREE, _CLASS, _LEAF = 0xFFFFFFFF, 0x1_0000, 0x1_0001, 0x10_0000
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_HTB_VERSION, _HTB_R2Q = 3, 10
_ETHERNET = 1
_NETEM_LATENCY64 = 10
_U32 = 0xFFFFFFFF
_TICK_NS = 64
"""Unit of scheduler time (PSCHED_SHIFT 6)."""
_FRAME_BYTES = FRAME_BITS // 8
_MIN_BURST_FRAMES, _BURST_S = 2, 0.002
UNBOUNDED_PKTS = 1 << 20


@dataclass(frozen=True)
class Shape:
    """Rate in bit/s, and the leaf's limit in packets (0: unbounded), or in bytes if `queue_bytes` is not 0.

    Both limits include the packet in transmission. `delay_us` is applied before the queue.
    """

    rate_bps: int
    queue_pkts: int
    queue_bytes: int = 0
    delay_us: float = 0.0


def switch_shape(link: LinkSpec, speed: float) -> Shape:
    """Return the shape of a switch's port on a link `speed` times as fast as `link`."""
    packets = 0 if link.queue_bytes else link.queue_pkts
    return Shape(_bps(link, speed), packets, link.queue_bytes, link.delay_us)


def nic_shape(link: LinkSpec, speed: float) -> Shape:
    """Return the shape of a host's port."""
    return Shape(_bps(link, speed), link.nic_queue_pkts, 0, link.delay_us)


def _bps(link: LinkSpec, speed: float) -> int:
    return round(speed * round(link.rate_mbps * 1e6))


def add_shape(sock: NetlinkSocket, ifindex: int, shape: Shape) -> None:
    """Add queue disciplines to an interface that has none."""
    glob = struct.pack("=5I", _HTB_VERSION, _HTB_R2Q, _CLASS & 0xFFFF, 0, 0)
    _request(sock, _NEWQDISC, _CREATE, (ifindex, _TREE, _ROOT), "htb", attr(_HTB_INIT, glob))
    set_rate(sock, ifindex, shape.rate_bps)
    kind, options = leaf(shape)
    _request(sock, _NEWQDISC, _CREATE, (ifindex, _LEAF, _CLASS), kind, options)


def set_rate(sock: NetlinkSocket, ifindex: int, rate_bps: int) -> None:
    """Change the rate; queued packets stay."""
    where = (ifindex, _CLASS, _TREE)
    _request(sock, _NEWTCLASS, _CREATE | _REPLACE, where, "htb", htb_class(rate_bps))


def htb_class(rate_bps: int) -> bytes:
    """Return the options of a class with this rate.

    The burst allows it to catch up after its timer is late by `_BURST_S` or two frames' time, so the
    long-run rate is exact.
    """
    rate = max(1, rate_bps // 8)
    spec = struct.pack("=BBHhHI", 0, _ETHERNET, 0, 0, 0, min(rate, _U32))
    burst_bytes = max(_MIN_BURST_FRAMES * _FRAME_BYTES, rate * _BURST_S)
    ticks = min(_U32, round(burst_bytes * 1e9 / rate / _TICK_NS))
    parms = spec + spec + struct.pack("=5I", ticks, ticks, _FRAME_BYTES, 0, 0)
    exact = struct.pack("=Q", rate)
    return attr(_HTB_PARMS, parms) + attr(_HTB_RATE64, exact) + attr(_HTB_CEIL64, exact)


def leaf(shape: Shape) -> tuple[str, bytes]:
    """Return kind and options of the leaf."""
    packets = max(1, shape.queue_pkts - 1) if shape.queue_pkts else UNBOUNDED_PKTS
    if shape.delay_us:
        on_wire = round(shape.rate_bps * shape.delay_us / 1e6 / FRAME_BITS)
        return "netem", _netem(shape.delay_us, packets + on_wire)
    if shape.queue_bytes:
        return "bfifo", struct.pack("=I", max(_FRAME_BYTES, shape.queue_bytes - _FRAME_BYTES))
    return "pfifo", struct.pack("=I", packets)


def _netem(delay_us: float, limit_pkts: int) -> bytes:
    delay_ns = round(delay_us * 1000)
    fixed = struct.pack("=6I", min(_U32, delay_ns // _TICK_NS), limit_pkts, 0, 0, 0, 0)
    return fixed + attr(_NETEM_LATENCY64, struct.pack("=q", delay_ns))


def has_netem() -> bool:
    """Return whether the kernel has netem, by trying it in a temporary namespace."""

    def delay(shape: Shape) -> bool:
        unshare(CLONE_NEWNET)
        with rtnl.route_socket() as route:
            try:
                add_shape(route, rtnl.LOOPBACK, shape)
            except OSError:
                return False
        return True

    return in_threads(delay, [Shape(1_000_000, 10, delay_us=10.0)])[0]


def _request(
    sock: NetlinkSocket, message: int, flags: int, where: tuple[int, int, int], kind: str, options: bytes
) -> None:
    """`where`: interface, handle, parent."""
    header = struct.pack("=BxHiIII", 0, 0, *where, 0)
    payload = header + attr(_KIND, kind.encode() + b"\0") + attr(_OPTIONS, options)
    sock.request(message, payload, NLM_F_ACK | flags)


_GETQDISC = 38
_TCMSG = struct.Struct("=BxHiIII")
_QDISC_ROOT = 0xFFFFFFFF
_HTB_HANDLE = 0x1_0000
_STATS2, _BASIC, _QUEUE, _PACKETS64 = 7, 1, 3, 8
_BASIC_STATS = struct.Struct("=QI")
_QUEUE_STATS = struct.Struct("=5I")


Counters = tuple[int, int, int, int]
"""Packets and bytes sent and drops since an interface was shaped; packets queued now."""


def open_nics(pid: int, nics: Sequence[Nic]) -> tuple[NetlinkSocket, list[int]]:
    """Return a route socket in the network namespace of `pid`, and the interface index of each NIC there.

    Raises OSError.
    """

    def look() -> tuple[NetlinkSocket, list[int]]:
        return rtnl.route_socket(), [socket.if_nametoindex(nic.name) for nic in nics]

    return call_in_netns(pid, look)


def read_queues(sock: NetlinkSocket) -> Iterator[tuple[int, Counters]]:
    """Yield the index and the counters of every shaped interface in the namespace of `sock`. Raises OSError.

    HTB's root counts what left its leaf and what the leaf dropped (net/sched/sch_htb.c).
    """
    for message in sock.request(_GETQDISC, _TCMSG.pack(0, 0, 0, 0, 0, 0), NLM_F_DUMP):
        _, _, ifindex, handle, parent, _ = _TCMSG.unpack_from(message.payload)
        if parent == _QDISC_ROOT and handle == _HTB_HANDLE:
            yield ifindex, _counts(parse_attrs(parse_attrs(message.payload, _TCMSG.size)[_STATS2]))


def _counts(stats: dict[int, bytes]) -> Counters:
    sent_bytes, packets = _BASIC_STATS.unpack_from(stats[_BASIC])
    if _PACKETS64 in stats:
        (packets,) = struct.unpack("=Q", stats[_PACKETS64])
    queued, _, drops, _, _ = _QUEUE_STATS.unpack_from(stats[_QUEUE])
    return packets, sent_bytes, drops, queued
