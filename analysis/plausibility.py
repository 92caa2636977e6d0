"""Check what a point measured, on any engine: the goodput of single flows, whether the window is steady, and
whether packets are conserved. Pure.

Goodput above the rate of the hosts' links is data from before the window that was delivered in it. A flow
that stays far below what its hosts' links leave it for a whole window starves: its packets find queues full
again and again (phase effects; Prakash et al., The TCP Outcast Problem, NSDI 2012).

MPTCP delivers in order: data delivered in the window may have arrived before it, and data that arrived in it
may still wait for a gap. A window is steady if its halves agree and subflows had settled before it.

A switch has sent, dropped or still holds every packet that arrived.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.text import three_digits
from model.machine import DRIFT_POINTS
from model.reasons import DEADLOCK, DRIFT, IMPOSSIBLE, JAIN, SETTLING, SLOWEST, STARVED, UNSTEADY, Reason
from model.result import UDP, FlowRow, PortRow
from topos.topology import Topology

MOST_PCT = 105.0
"""The most that a flow may deliver, in percent of its hosts' links: a little data that waited for a gap when
the window began may come on top."""
STARVED_PCT = 5.0
"""A flow with less than this share of what its hosts' links leave it, and of the mean flow, starves. Between
real hosts behind queues of 10 packets the slowest flow of a permutation had 10 % of the mean."""


OVER_CARRIED_PCT = "delivered_over_carried_pct"
"""Metric: bytes that MPTCP flows without a size delivered in the window, in percent of the bytes that their
subflows had acknowledged in it. 100 if the data waiting at receivers is constant; absent without such
flows."""
TOLERANCE_PCT = 5.0
SETTLING_ROUND_TRIPS = 50.0
"""How long subflows of LIA take to settle. Simulated (k=4, 10 Mb/s, 8 subflows, 6 seeds), mean goodput was
44 % of the link rate in the first 3 s, 74 % in the next, and 81 to 89 % in each later one; the round trip was
141 ms. So 6 s, or 43 round trips, are too short. Single flows need none of it."""


def impossible(flows: Sequence[FlowRow], topology: Topology, rate_mbps: float) -> tuple[Reason, ...]:
    """Return the reason for suspicion if flows delivered more than their hosts' links carry;
    else nothing. `rate_mbps` is the rate of links of speed 1."""
    lasting = _lasting(flows)
    carried_mbps = [min(_links_mbps(end, topology, rate_mbps) for end in (f.src, f.dst)) for f in lasting]
    shares = [100 * f.goodput_mbps / most for f, most in zip(lasting, carried_mbps, strict=True)]
    above = [share for share in shares if share > MOST_PCT]
    if not above:
        return ()
    worst = lasting[shares.index(max(above))]
    text = (
        f"{len(above)} of {len(lasting)} flows delivered more than their hosts' links carry, at most "
        f"{max(above):.0f} % ({worst.src} to {worst.dst}): data from before the window was delivered in it; "
        "use a longer window (--seconds)"
    )
    return (Reason(IMPOSSIBLE, text, numbers=(("goodput_over_links_pct", max(above)),)),)


def starved(flows: Sequence[FlowRow], topology: Topology, rate_mbps: float) -> tuple[Reason, ...]:
    """Return the caution if flows that sent in the whole window got almost nothing; else nothing."""
    sending = _lasting(flows)
    if len(sending) < 2:
        return ()
    mean_mbps = statistics.fmean(flow.goodput_mbps for flow in sending)
    sources, sinks = Counter(flow.src for flow in sending), Counter(flow.dst for flow in sending)
    due_mbps = [
        min(
            mean_mbps,
            _links_mbps(flow.src, topology, rate_mbps) / sources[flow.src],
            _links_mbps(flow.dst, topology, rate_mbps) / sinks[flow.dst],
        )
        for flow in sending
    ]
    found = [
        (flow.goodput_mbps, due, flow)
        for flow, due in zip(sending, due_mbps, strict=True)
        if flow.goodput_mbps < STARVED_PCT / 100 * due
    ]
    if not found:
        return ()
    least_mbps, due, worst = min(found, key=lambda each: each[0])
    text = (
        f"{len(found)} of {len(sending)} flows got under {STARVED_PCT:g} % of their share in the whole "
        f"window, the slowest {least_mbps:.2g} of {three_digits(due)} Mb/s ({worst.src} to {worst.dst}): "
        "other senders may have locked them out of full queues (docs/simulator.md)"
    )
    numbers = (("starved_flows", float(len(found))), ("least_mbps", least_mbps))
    return (Reason(STARVED, text, numbers=numbers, doubts=(SLOWEST, JAIN)),)


def deadlock(ports: Sequence[int], names: Sequence[tuple[str, str, str]]) -> tuple[Reason, ...]:
    """Return the caution if these ports wait for one another at the end of the window; else nothing.
    `names` are those of all ports (model/network_plan.py)."""
    if not ports:
        return ()
    ends = [f"{names[port][0]}-{names[port][1]}" for port in ports]
    shown = ", ".join(ends[:4]) + (" ..." if len(ends) > 4 else "")
    text = f"{len(ends)} ports wait for one another's pause frames and will never go on: {shown}"
    return (Reason(DEADLOCK, text, numbers=(("deadlocked_ports", float(len(ends))),)),)


def _lasting(flows: Sequence[FlowRow]) -> list[FlowRow]:
    """Return the flows that sent during the whole window, without those of constant rate."""
    return [
        flow for flow in flows if flow.transport != UDP and math.isfinite(flow.goodput_mbps) and _lasts(flow)
    ]


def _lasts(flow: FlowRow) -> bool:
    if flow.size_bytes:
        return flow.start_s <= 0 and not math.isfinite(flow.completed_s)
    return not flow.start_s > 0


def _links_mbps(host: str, topology: Topology, rate_mbps: float) -> float:
    """Return the rate of all links of a host."""
    nics = topology.nics_of(topology.index(host))
    return rate_mbps * sum(topology.links[nic.link].speed for nic in nics)


def unsteady(metrics: Mapping[str, float]) -> str:
    """Return a warning for a point whose window is off by more than the tolerance; else an empty text."""
    off_pct = metrics.get(OVER_CARRIED_PCT, 100.0) - 100
    if abs(off_pct) <= TOLERANCE_PCT:
        return ""
    amount = f"{abs(off_pct):.0f} % {'more' if off_pct > 0 else 'less'} was delivered than subflows carried"
    why = "data from before the window was delivered in it" if off_pct > 0 else "some data still waited"
    return f"{amount} in the window, because {why}: use a longer window (--seconds)"


def unsteady_reasons(metrics: Mapping[str, float]) -> tuple[Reason, ...]:
    """Return the reason for suspicion of a point with these metrics, if its window is off; else nothing."""
    text = unsteady(metrics)
    return (Reason(UNSTEADY, text, numbers=((OVER_CARRIED_PCT, metrics[OVER_CARRIED_PCT]),)),) if text else ()


def drift_reasons(halves_pct: tuple[float, float] | None) -> tuple[Reason, ...]:
    """Return the reason for doubt if mean goodput in the halves of a window, in percent of the link rate,
    differs by more than the tolerance; else nothing.

    The tolerance is a share of the link rate, or of the mean goodput where flows get more than that: from
    several NICs, or over links that are faster than the slowest."""
    if halves_pct is None:
        return ()
    whole_pct = max(100.0, sum(halves_pct) / 2)
    if abs(halves_pct[1] - halves_pct[0]) <= DRIFT_POINTS / 100 * whole_pct:
        return ()
    first, second = halves_pct
    text = f"mean goodput was {first:.1f} % of the link rate in the first half, then {second:.1f} %"
    numbers = (("first_half_pct", first), ("second_half_pct", second))
    return (Reason(DRIFT, text, numbers=numbers),)


def settling_reasons(warmup_s: float, round_trip_s: float) -> tuple[Reason, ...]:
    """Return the reason for doubt if subflows had fewer round trips to settle in than they need; else
    nothing. `round_trip_s` is the mean over subflows when the window began, 0 if there were none."""
    trips = warmup_s / round_trip_s if round_trip_s else SETTLING_ROUND_TRIPS
    if trips >= SETTLING_ROUND_TRIPS:
        return ()
    enough_s = math.ceil(SETTLING_ROUND_TRIPS * round_trip_s)
    text = (
        f"the warm-up of {warmup_s:g} s held {trips:.0f} round trips of {1000 * round_trip_s:.0f} ms; "
        f"subflows need {SETTLING_ROUND_TRIPS:.0f} to settle: use --warmup {enough_s}"
    )
    return (Reason(SETTLING, text, numbers=(("round_trips", trips),)),)


@dataclass(frozen=True)
class Balance:
    """Packet counts of one switch in the measured window: packets arrived (without losses on the wire),
    packets sent, and packets dropped by its queues."""

    node: str
    layer: str
    arrived: int
    sent: int
    dropped: int

    @property
    def unaccounted(self) -> int:
        """Packets held at the end less those held at the start; 0 if the switch was empty both times."""
        return self.arrived - self.sent - self.dropped


def balances(ports: Sequence[PortRow]) -> list[Balance]:
    """Return the balance of every switch, in the order of the ports."""
    layers = {port.node: port.layer.partition("-")[0] for port in ports}
    arrived, sent, dropped = (dict.fromkeys(layers, 0) for _ in range(3))
    for port in ports:
        arrived[port.peer] += port.tx_packets - port.lost
        sent[port.node] += port.tx_packets
        dropped[port.node] += port.drops
    return [
        Balance(node, layer, arrived[node], sent[node], dropped[node])
        for node, layer in layers.items()
        if layer != "host"
    ]


def unaccounted(ports: Sequence[PortRow]) -> int:
    """Return the number of packets that appeared in or vanished from switches, in total."""
    return sum(abs(balance.unaccounted) for balance in balances(ports))


def undelivered_bytes(flows: Iterable[FlowRow]) -> int:
    """Return the total difference between sizes and received bytes, over all flows with a size."""
    return sum(abs(flow.size_bytes - flow.bytes_received) for flow in flows if flow.size_bytes)
