"""Laws of TCP in closed form, and what samples show of them. Pure.

A loss halves a Reno window, a round trip without one adds a packet to it. Sources: Mathis, Semke, Mahdavi and
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
"""Payload of a full segment: 1500 bytes of IPv4 less headers and time stamps."""
MATHIS = math.sqrt(1.5)
"""Of senders whose windows grow by a packet a round trip however many acknowledgements that takes: Linux and
ours count what was acknowledged (RFC 3465). One that counts delayed acknowledgements has sqrt(3/4)."""
TIMEOUTS_FROM = 0.01
"""Loss probability above which windows are so small that timeouts tell: 12 packets at this one."""
LEAST_RTO_MS = 200.0
_FALLEN = 0.6
"""Of its top, what a window has when it is sure to have been halved: loss recovery may get there by steps."""


def mathis_pkts(loss: float) -> float:
    """Packets a round trip: Mathis et al.'s C / sqrt(p)."""
    return MATHIS / math.sqrt(loss)


def padhye_pkts(loss: float, rto_rtts: float) -> float:
    """Packets a round trip with timeouts that begin at `rto_rtts` round trips: Padhye et al.'s approximate
    model, a packet an acknowledgement."""
    waiting = rto_rtts * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return 1 / (math.sqrt(2 * loss / 3) + waiting)


def fill_bytes(rate_mbps: float, seconds: float) -> float:
    """What a link of that rate carries of payload in that time, in full packets back to back."""
    return rate_mbps * 1e6 * seconds / FRAME_BITS * SEGMENT_BYTES


def packet_ms(rate_mbps: float) -> float:
    """How long a full packet takes to leave."""
    return FRAME_BITS / rate_mbps / 1000


def pkts_per_round(flow: FlowRow) -> float:
    """Goodput in full segments a mean round trip; nan where that was not sampled."""
    return flow.goodput_mbps * 1e6 / 8 / SEGMENT_BYTES * flow.srtt_ms_mean / 1000


def lost_share(ports: Sequence[PortRow]) -> float:
    """Of what data took over links between switches, the share that was lost at random; the directions that
    carry less, acknowledgements, are not counted. 0 where nothing was sent."""
    inner = [port for port in ports if "host" not in port.layer.split("-")]
    back = {(port.peer, port.node): port.tx_bytes for port in inner}
    data = [port for port in inner if port.tx_bytes > back.get((port.node, port.peer), 0)]
    sent = sum(port.tx_packets for port in data)
    return sum(port.lost for port in data) / sent if sent else 0.0


@dataclass(frozen=True)
class Saw:
    """A window from one halving to the next: its top in packets, how many round trips it lasted, and its mean
    in % of the top, each round trip counting once."""

    start_s: float
    end_s: float
    top_pkts: float
    rounds: float
    mean_pct: float


def saws(sockets: Table, flow: int = 0) -> list[Saw]:
    """The whole saws in the measured window of a flow's first subflow."""
    mine = (sockets["flow"] == flow) & (sockets["subflow"] == 0) & (sockets["t_s"] >= 0)
    t_s, window = sockets["t_s"][mine], sockets["cwnd_pkts"][mine]
    if len(t_s) < 2:
        return []
    rounds = np.append(np.diff(t_s), 0.0) / (sockets["srtt_ms"][mine] / 1000)
    ends = _falls(window)
    return [_saw(t_s, window, rounds, first, last) for first, last in itertools.pairwise(ends)]


def _falls(window: Floats) -> list[int]:
    """Where it has come down from its top."""
    falls, top = [], 0.0
    for at, pkts in enumerate(window.tolist()):
        if pkts < _FALLEN * top:
            falls.append(at)
            top = 0.0
        top = max(top, pkts)
    return falls


def _saw(t_s: Floats, window: Floats, rounds: Floats, first: int, last: int) -> Saw:
    there = slice(first, last)
    top, lasted = float(window[there].max()), float(rounds[there].sum())
    mean = float((window[there] * rounds[there]).sum()) / lasted
    return Saw(float(t_s[first]), float(t_s[last]), top, lasted, 100 * mean / top)


@dataclass(frozen=True, eq=False)
class Waits:
    """What each ping of the first subflow found queued on its way, in packets at the bottleneck's rate (one
    at a link ten times as fast is a tenth), how much of it was being sent, and how long its way took, ms."""

    queued: Floats
    under_way: Floats
    out_ms: Floats

    @property
    def line(self) -> tuple[float, float]:
        """Least squares: ms for each packet queued, and on an empty path. A packet under way has on average
        half of it left to send, which counts as half a packet."""
        slope, intercept = np.polyfit(self.queued - self.under_way / 2, self.out_ms, 1)
        return float(slope), float(intercept)


def way_out(ports: Sequence[PortRow]) -> dict[int, float]:
    """The ports that data of a single flow passes, and what a packet's time there is of that at the
    bottleneck: those that sent more than the ports back."""
    back = {(port.peer, port.node): port.tx_bytes for port in ports}
    used = [port for port in ports if port.tx_bytes > back.get((port.node, port.peer), 0)]
    rates = {port.port: port.tx_bytes / port.utilisation_pct for port in used if port.utilisation_pct > 0}
    slowest = min(rates.values(), default=0.0)
    return {port: slowest / rate for port, rate in rates.items()}


def waits(pings: Table, queues: Table, times: Table, way: Mapping[int, float]) -> Waits | None:
    """Of pings in the measured window at whose instant queues were sampled; between two samples, where none
    was, by interpolation. `way` is as of `way_out`. None where there is nothing to compare."""
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
