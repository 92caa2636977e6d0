"""Host tunings that matter to MPTCP, and their names. Pure.

Sender: the send buffer of an MPTCP connection is the sum of its subflows' buffers plus the first number of
net.ipv4.tcp_wmem (__mptcp_sync_sndbuf in net/mptcp/protocol.h, Linux >= 6.7). Data goes to a subflow as soon
as any subflow has room. With the kernel's default of 4 kB no data therefore remains unassigned. If the
slowest subflow delays the data at the front, the send buffer fills and the other subflows have nothing to
send. A reserve beyond the subflows' buffers keeps them busy.

Receiver: data from one path waits for data that is still on another path. The receive buffer that holds it
starts small and grows with the rate of reading (mptcp_rcv_space_adjust), too slowly for transfers of a few
seconds. When its window is exhausted, a receiver drops data that its subflows have already acknowledged
(mptcp_data_queue_ofo, counter NoDSSInWindow). The sender retransmits it only when a subflow has nothing else
to send (mptcp_subflow_get_retrans). A window as large as all data in flight is never exhausted.
docs/experiments/subflow-idle.md lists the measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fabric.plan import FRAME_BITS
from model.flows import PlannedFlow
from model.spec import LinkSpec, RunSpec, TransportSpec
from topos.topology import Topology
from workloads import matrices

WMEM, RMEM = "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"
NOTSENT_LOWAT = "net.ipv4.tcp_notsent_lowat"
UNTOUCHED = "kernel's own"
DEFAULT = "default"
AT_ONCE = "at once"
KERNELS_OWN: Mapping[str, str] = {WMEM: "4096 16384 4194304"}
"""Linux's defaults on machines with 4 GB or more (tcp_init in net/ipv4/tcp.c)."""
RESERVE: Mapping[str, str] = {WMEM: "4194304 16384 4194304"}
"""4 MB instead of 4 kB: what a path 64 times as fast as the slowest delivers while the slowest sends one
burst of 64 kB. The other numbers are Linux's defaults."""
CAPPED_RESERVE: Mapping[str, str] = {WMEM: "4194304 16384 262144"}
"""The reserve, and at most 256 kB for each subflow: the data that a timed-out subflow can delay."""
MAX_CAP_BYTES, MIN_CAP_BYTES, SHARED_BYTES = 256 << 10, 32 << 10, 2 << 20
"""The cap is a share of 2 MB among all subflows that share one link. Eight subflows have 256 kB each. 64
subflows have windows of two packets and would need 15 s to send 256 kB. 32 kB are 20 packets."""
RESERVE_IN_CAPS, MIN_RESERVE_BYTES = 16, 1 << 20
"""What fast paths deliver while the slowest sends its buffer: 4 MB beside 256 kB. With 0.5 MB beside 32 kB
subflows were idle for 2 to 4 % of the time; with 1 MB they were not."""
BUFFER_A_BYTE = 4
"""Receive buffer per byte of window: packets take more memory than their payload, so a receive buffer
advertises at most half of its size."""
CAPPED_PATH_BYTES = 200_000
"""A queue of 100 full packets, and a third more on the wire. On such paths the cap was measured to cost
nothing, with 2 and with 8 subflows. Paths that hold more get no cap."""
ROOM_FROM_THE_START: Mapping[str, str] = {RMEM: "4096 4194304 8388608"}
"""Initial receive buffer of 4 MB instead of 128 kB."""
_MIN_BYTES, _INITIAL_BYTES, _MAX_ROOM_BYTES = 4096, 16384, 32 << 20
"""Linux's defaults."""
_BUFFERS = {"send_buffer": "send buffer", "receive_buffer": "receive buffer"}
"""Buffers of simulated connections, in segments; 0 for no limit."""
MAX_LINKS = 12
"""Links of a round trip in a network of three layers."""


def default(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> Mapping[str, str]:
    """Return the sysctls of MPTCP hosts for which the spec sets no send buffers; empty for plain TCP.

    If the spec sets send buffers, the result is empty too: our receive buffers match our send buffers only,
    and `kernel's own` must mean the kernel's defaults.

    All MPTCP hosts get the reserve. If a path and one queue hold little data, each subflow gets a cap, and
    the receiver gets room for all data in flight. The receiver's room is omitted where plain TCP flows run
    beside, because these must not depend on MPTCP's settings. On other paths only transfers get a larger
    initial receive buffer.
    """
    if spec.transport.subflows == 1 or WMEM in spec.transport.sysctls:
        return {}
    transfers = matrices.transfers(spec.workload.matrix)
    if not _holds_little(spec.link):
        return {**RESERVE, **(ROOM_FROM_THE_START if transfers else {})}
    fair_bytes = int(SHARED_BYTES / max(1.0, sharing(topology, flows)))
    cap = min(MAX_CAP_BYTES, max(MIN_CAP_BYTES, fair_bytes))
    reserve = max(MIN_RESERVE_BYTES, RESERVE_IN_CAPS * cap)
    room = BUFFER_A_BYTE * (reserve + spec.transport.subflows * cap)
    sender = {WMEM: f"{reserve} {_INITIAL_BYTES} {cap}"}
    receiver = {RMEM: f"{_MIN_BYTES} {room} {max(room, _MAX_ROOM_BYTES)}"}
    return {**sender, **receiver} if transfers or all(flow.mptcp for flow in flows) else sender


def _holds_little(link: LinkSpec) -> bool:
    """Return whether a path and one bounded queue hold so little data that the cap never limits a flow."""
    queue_bytes = link.queue_bytes or link.queue_pkts * FRAME_BITS // 8
    path_bytes = link.rate_mbps * link.delay_us * MAX_LINKS / 8
    return queue_bytes > 0 and queue_bytes + path_bytes <= CAPPED_PATH_BYTES


def sharing(topology: Topology, flows: Sequence[PlannedFlow]) -> float:
    """Return the number of subflows per link of the narrowest layer, if all were spread evenly.

    Only flows without a size count. Examples: 8 for one flow per host with 8 subflows on a FatTree; 64 for
    two such flows per host on a 4:1 FatTree.
    """
    layers: defaultdict[tuple[int, int], float] = defaultdict(float)
    for link in topology.links:
        layers[topology.nodes[link.a].layer, topology.nodes[link.b].layer] += link.speed
    return sum(flow.subflows for flow in flows if not flow.size_bytes) / min(layers.values())


def words(transport: TransportSpec) -> str:
    """Return a short name of the hosts' tuning: `default`, `kernel's own`, `tcp_notsent_lowat 16K`."""
    parts = [
        f"{name.rpartition('.')[2]} {_short(value)}"
        for name, value in sorted(transport.sysctls.items())
        if KERNELS_OWN.get(name) != value
    ]
    if transport.write_bytes:
        parts.append(f"writes of {_short(str(transport.write_bytes))}")
    return ", ".join(parts) or (UNTOUCHED if transport.sysctls else DEFAULT)


def joins(transport: TransportSpec) -> str:
    """Return when further subflows join: `at once`, `after 10 ms`, `after 100 kB`; empty for plain TCP."""
    parts = [
        *([f"{transport.join_after_ms:g} ms"] if transport.join_after_ms else []),
        *([_decimal(transport.join_after_bytes)] if transport.join_after_bytes else []),
    ]
    if transport.subflows == 1:
        return ""
    return f"after {' or '.join(parts)}" if parts else AT_ONCE


def _decimal(size: int) -> str:
    """Return a size with decimal units: `100 kB`, `1 MB`, `1500 bytes`."""
    for factor, unit in ((10**6, "MB"), (1000, "kB")):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} bytes"


def words_of(spec: RunSpec) -> str:
    """Return the name of the tuning of real or simulated hosts; simulated ones: `send buffer 792`."""
    parts = [f"{name} {value}" for field, name in _BUFFERS.items() if (value := getattr(spec.stack, field))]
    return ", ".join(parts) or words(spec.transport)


def _short(value: str) -> str:
    """Return `4096 1048576` as `4K 1M`."""
    return " ".join(_unit(int(number)) if number.isdecimal() else number for number in value.split())


def _unit(number: int) -> str:
    for size, unit in ((1 << 20, "M"), (1 << 10, "K")):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)
