"""Tunings of end hosts that matter to MPTCP, and words for them. Pure.

The send buffer of an MPTCP connection is the sum of its subflows' and the first number of
net.ipv4.tcp_wmem (__mptcp_sync_sndbuf in net/mptcp/protocol.h, Linux >= 6.7). What an application writes
goes to a subflow as soon as any has room, so with the kernel's own 4 kB there is never anything that is not
yet bound to a subflow; and when the slowest holds up the data in front, the buffer is full and the others run
dry. With a reserve beyond the subflows' own buffers they go on. At the other end data that came by one path
waits for what is still on another, in a receive buffer that starts small and grows with what is read
(mptcp_rcv_space_adjust): too slowly for a transfer of seconds. Where its window runs out, a receiver drops
what its subflows have acknowledged already (mptcp_data_queue_ofo, counted as NoDSSInWindow), which is sent
again only when some subflow has nothing else to do (mptcp_subflow_get_retrans): a window that holds whatever
the sender may have under way never runs out. docs/subflow-idle.md has what was measured.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from fabric.plan import FRAME_BITS
from model.flows import PlannedFlow
from model.spec import LinkSpec, RunSpec, StackSpec, TransportSpec
from topos.topology import Topology
from workloads import matrices

WMEM, RMEM = "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"
NOTSENT_LOWAT = "net.ipv4.tcp_notsent_lowat"
UNTOUCHED = "kernel's own"
DEFAULT = "default"
AT_ONCE = "at once"
KERNELS_OWN: Mapping[str, str] = {WMEM: "4096 16384 4194304"}
"""What Linux itself sets on machines of 4 GB and more (tcp_init in net/ipv4/tcp.c)."""
RESERVE: Mapping[str, str] = {WMEM: "4194304 16384 4194304"}
"""4 MB instead of 4 kB: what a path 64 times as fast as the slowest delivers while that one works off one
burst of 64 kB. The other numbers are the kernel's own."""
CAPPED_RESERVE: Mapping[str, str] = {WMEM: "4194304 16384 262144"}
"""The reserve, and no more than 256 kB for each subflow: what one that has fallen back can hold up."""
MOST_CAP_BYTES, LEAST_CAP_BYTES, SHARED_BYTES = 256 << 10, 32 << 10, 2 << 20
"""The cap is a share of 2 MB for all subflows that share a link's worth of network. Eight have 256 kB each;
64 have windows of two packets, and 256 kB would take one a quarter of a minute. 32 kB are 20 packets."""
RESERVE_IN_CAPS, LEAST_RESERVE_BYTES = 16, 1 << 20
"""What fast paths deliver while the slowest works off what it holds: 4 MB beside 256 kB. Half a MB beside
32 kB left subflows idle for 2 to 4 % of the time, 1 MB did not."""
BUFFER_A_BYTE = 4
"""A receive buffer advertises half of itself, or less: packets take more memory than their payload."""
CAPPED_PATH_BYTES = 200_000
"""A queue of 100 full packets and a third more on the way: for such paths the cap was measured to cost
nothing, with 2 and with 8 subflows. What holds more gets no cap."""
ROOM_FROM_THE_START: Mapping[str, str] = {RMEM: "4096 4194304 8388608"}
"""A connection's receive buffer begins with 4 MB in place of 128 kB."""
_LEAST_BYTES, _INITIAL_BYTES, _MOST_ROOM_BYTES = 4096, 16384, 32 << 20
"""Linux's own."""
_BUFFERS = {"send_buffer": "send buffer", "receive_buffer": "receive buffer"}
"""Of simulated connections, in segments; 0: none."""
MOST_LINKS = 12
"""There and back, in a network of three layers."""


def default(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> Mapping[str, str]:
    """How MPTCP's hosts are set up unless the spec says otherwise. Nothing for plain TCP, nor where the spec
    sets send buffers of its own: room at the receiver is made for ours, and `kernel's own` is to be that.

    They have the reserve. Where a path and one queue hold little each subflow has a cap, and the receiver
    room for all that a sender may then have under way, unless plain TCP runs beside, which is to be the same
    beside any. Elsewhere there is some room where flows have an end."""
    if spec.transport.subflows == 1 or WMEM in spec.transport.sysctls:
        return {}
    transfers = matrices.transfers(spec.workload.matrix)
    if not _holds_little(spec.link):
        return {**RESERVE, **(ROOM_FROM_THE_START if transfers else {})}
    fair_bytes = int(SHARED_BYTES / max(1.0, sharing(topology, flows)))
    cap = min(MOST_CAP_BYTES, max(LEAST_CAP_BYTES, fair_bytes))
    reserve = max(LEAST_RESERVE_BYTES, RESERVE_IN_CAPS * cap)
    room = BUFFER_A_BYTE * (reserve + spec.transport.subflows * cap)
    sender = {WMEM: f"{reserve} {_INITIAL_BYTES} {cap}"}
    receiver = {RMEM: f"{_LEAST_BYTES} {room} {max(room, _MOST_ROOM_BYTES)}"}
    return {**sender, **receiver} if transfers or all(flow.mptcp for flow in flows) else sender


def _holds_little(link: LinkSpec) -> bool:
    """Whether a path and one queue, which has a limit, hold so little that the cap never binds."""
    queue_bytes = link.queue_bytes or link.queue_pkts * FRAME_BITS // 8
    path_bytes = link.rate_mbps * link.delay_us * MOST_LINKS / 8
    return queue_bytes > 0 and queue_bytes + path_bytes <= CAPPED_PATH_BYTES


def sharing(topology: Topology, flows: Sequence[PlannedFlow]) -> float:
    """How many subflows of flows without an end share a link's worth of the narrowest layer, were all spread
    evenly: 8 of one flow a host with 8 on a FatTree, 64 of two on a 4:1 FatTree."""
    layers: Counter[tuple[int, int]] = Counter()
    for link in topology.links:
        layers[topology.nodes[link.a].layer, topology.nodes[link.b].layer] += link.speed
    return sum(flow.subflows for flow in flows if not flow.size_bytes) / min(layers.values())


def words(transport: TransportSpec) -> str:
    """A short name of how the end hosts are tuned: `default`, `kernel's own`, `tcp_notsent_lowat 16K`."""
    parts = [
        f"{name.rpartition('.')[2]} {_short(value)}"
        for name, value in sorted(transport.sysctls.items())
        if KERNELS_OWN.get(name) != value
    ]
    if transport.write_bytes:
        parts.append(f"writes of {_short(str(transport.write_bytes))}")
    return ", ".join(parts) or (UNTOUCHED if transport.sysctls else DEFAULT)


def joins(transport: TransportSpec) -> str:
    """When MPTCP's further subflows join: `at once`, `after 10 ms`, `after 100 kB`; empty for plain TCP."""
    parts = [
        *([f"{transport.join_after_ms:g} ms"] if transport.join_after_ms else []),
        *([_decimal(transport.join_after_bytes)] if transport.join_after_bytes else []),
    ]
    if transport.subflows == 1:
        return ""
    return f"after {' or '.join(parts)}" if parts else AT_ONCE


def _decimal(size: int) -> str:
    """`100 kB`, `1 MB`, `1500 bytes`."""
    for factor, unit in ((10**6, "MB"), (1000, "kB")):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} bytes"


def words_of(spec: RunSpec) -> str:
    """As `words`, of real or simulated hosts, whose connections' buffers are told: `send buffer 792`."""
    parts = [f"{name} {value}" for field, name in _BUFFERS.items() if (value := getattr(spec.stack, field))]
    return ", ".join(parts) or words(spec.transport)


def untuned(stack: StackSpec) -> StackSpec:
    """The same simulated hosts but for what `words_of` tells."""
    return dataclasses.replace(stack, send_buffer=0, receive_buffer=0)


def _short(value: str) -> str:
    """`4096 1048576` as `4K 1M`."""
    return " ".join(_unit(int(number)) if number.isdecimal() else number for number in value.split())


def _unit(number: int) -> str:
    for size, unit in ((1 << 20, "M"), (1 << 10, "K")):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)
