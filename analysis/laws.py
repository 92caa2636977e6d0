"""Laws of TCP in closed form, and how samples agree with them. Pure.

A loss halves a Reno window; a round trip without loss adds one packet. Sources: Mathis, Semke, Mahdavi and
Ott, The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 27(3), 1997; Padhye, Firoiu,
Towsley and Kurose, Modeling TCP Throughput: A Simple Model and its Empirical Validation, SIGCOMM 1998.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.plan import FRAME_BITS
from model.result import FlowRow, PortRow, Table

Floats = npt.NDArray[np.float64]
SEGMENT_BYTES = 1448
"""Payload of a full segment: 1500 bytes of IPv4 less headers and timestamps."""
MATHIS = math.sqrt(1.5)
"""The constant C for senders that grow their window by one packet per round trip with delayed
acknowledgements too. Linux and our simulator count acknowledged bytes (RFC 3465); senders that count
acknowledgements have sqrt(3/4)."""
TIMEOUTS_FROM = 0.01
"""Loss probability above which windows are so small that timeouts matter: 12 packets at this one."""
MIN_RTO_MS = 200.0
_FALLEN = 0.6
"""A window below this share of its top has been halved; loss recovery may reduce it in steps."""


def mathis_pkts(loss: float) -> float:
    """Return packets per round trip by Mathis et al.: C / sqrt(p)."""
    return MATHIS / math.sqrt(loss)


def padhye_pkts(loss: float, rto_rtts: float) -> float:
    """Return packets per round trip by Padhye et al.'s approximate model, with one ACK per packet.

    `rto_rtts` is the first timeout in round trips.
    """
    waiting = rto_rtts * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return 1 / (math.sqrt(2 * loss / 3) + waiting)


def fill_bytes(rate_mbps: float, seconds: float) -> float:
    """Return the payload bytes that back-to-back full packets carry over the link in that time."""
    return rate_mbps * 1e6 * seconds / FRAME_BITS * SEGMENT_BYTES


def packet_ms(rate_mbps: float) -> float:
    """Return the transmission time of a full packet, in ms."""
    return FRAME_BITS / rate_mbps / 1000


def pkts_per_round(flow: FlowRow) -> float:
    """Return goodput in full segments per mean round trip; nan if the RTT was not sampled."""
    return flow.goodput_mbps * 1e6 / 8 / SEGMENT_BYTES * flow.srtt_ms_mean / 1000


def lost_share(ports: Sequence[PortRow]) -> float:
    """Return the share of data packets that links between switches lost at random; 0 if none were sent.

    Only the direction of each link that carried more bytes counts; the other carries acknowledgements.
    """
    inner = [port for port in ports if "host" not in port.layer.split("-")]
    back = {(port.peer, port.node): port.tx_bytes for port in inner}
    data = [port for port in inner if port.tx_bytes > back.get((port.node, port.peer), 0)]
    sent = sum(port.tx_packets for port in data)
    return sum(port.lost for port in data) / sent if sent else 0.0


@dataclass(frozen=True)
class Sawtooth:
    """One sawtooth of a window, from one halving to the next: its top in packets, its length in round trips,
    and its mean in % of the top, each round trip counting once."""

    start_s: float
    end_s: float
    top_pkts: float
    rounds: float
    mean_pct: float


def sawteeth(sockets: Table) -> list[Sawtooth]:
    """Return the complete sawteeth of the first flow's first subflow in the measured window."""
    mine = (sockets["flow"] == 0) & (sockets["subflow"] == 0) & (sockets["t_s"] >= 0)
    t_s, window = sockets["t_s"][mine], sockets["cwnd_pkts"][mine]
    if len(t_s) < 2:
        return []
    rounds = np.append(np.diff(t_s), 0.0) / (sockets["srtt_ms"][mine] / 1000)
    ends = _falls(window)
    return [_sawtooth(t_s, window, rounds, first, last) for first, last in itertools.pairwise(ends)]


def _falls(window: Floats) -> list[int]:
    """Return the indices at which the window has fallen from its top."""
    falls, top = [], 0.0
    for at, pkts in enumerate(window.tolist()):
        if pkts < _FALLEN * top:
            falls.append(at)
            top = 0.0
        top = max(top, pkts)
    return falls


def _sawtooth(t_s: Floats, window: Floats, rounds: Floats, first: int, last: int) -> Sawtooth:
    there = slice(first, last)
    top, lasted = float(window[there].max()), float(rounds[there].sum())
    mean = float((window[there] * rounds[there]).sum()) / lasted
    return Sawtooth(float(t_s[first]), float(t_s[last]), top, lasted, 100 * mean / top)


@dataclass(frozen=True, eq=False)
class Waits:
    """Pings of the first subflow: packets queued on the path when each was sent, how many of these were in
    transmission, and the one-way delay of the ping, in ms.

    Packets are counted at the bottleneck's rate: one packet at a link ten times as fast counts a tenth.
    """

    queued: Floats
    under_way: Floats
    out_ms: Floats

    @property
    def line(self) -> tuple[float, float]:
        """Fit a line by least squares: return ms per queued packet and ms on an empty path.

        A packet in transmission has half of its time left on average, so it counts as half a packet.
        """
        slope, intercept = np.polyfit(self.queued - self.under_way / 2, self.out_ms, 1)
        return float(slope), float(intercept)


def way_out(ports: Sequence[PortRow]) -> dict[int, float]:
    """Return the ports on the data path of a single flow, with a packet's time there relative to its time at
    the bottleneck. These are the ports that sent more than the ports of the opposite direction."""
    back = {(port.peer, port.node): port.tx_bytes for port in ports}
    used = [port for port in ports if port.tx_bytes > back.get((port.node, port.peer), 0)]
    rates = {port.port: port.tx_bytes / port.utilisation_pct for port in used if port.utilisation_pct > 0}
    slowest = min(rates.values(), default=0.0)
    return {port: slowest / rate for port, rate in rates.items()}


def waits(pings: Table, queues: Table, times: Table, way: Mapping[int, float]) -> Waits | None:
    """Return pings in the measured window with the queues at their instants, interpolated between samples.

    `way` is a result of `way_out`. Returns None if there is nothing to compare.
    """
    t_s = np.unique(times["t_s"])
    chosen = (pings["subflow"] == 0) & (pings["flow"] == 0) & ~np.isnan(pings["out_ms"])
    if not len(t_s) or not chosen.any():
        return None
    queued, under_way = np.zeros(len(t_s)), np.zeros(len(t_s))
    for port, weight in way.items():
        mine = queues["port"] == port
        at = np.searchsorted(t_s, queues["t_s"][mine])
        queued[at] += weight * queues["pkts"][mine]
        under_way[at] += weight
    at_s, out_ms = pings["t_s"][chosen], pings["out_ms"][chosen]
    inside = (at_s >= t_s[0]) & (at_s <= t_s[-1])
    found, sending = (np.interp(at_s[inside], t_s, values) for values in (queued, under_way))
    return Waits(found, sending, out_ms[inside]) if np.unique(found).size > 2 else None
