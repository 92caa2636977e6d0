"""Check the goodput of single flows, on any engine: that their hosts' links could carry it, and that no flow
was locked out. Pure.

Goodput above the links' rate is data from before the window that was delivered in it. A flow that stays far
below what its hosts' links leave it for a whole window starves: its packets find queues full again and again
(phase effects; Prakash et al., The TCP Outcast Problem, NSDI 2012).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from model.reasons import IMPOSSIBLE, JAIN, SLOWEST, STARVED, Reason
from model.result import UDP, FlowRow
from topos.topology import Topology

MOST_PCT = 105.0
"""The most that a flow may deliver, in percent of its hosts' links: a little data that waited for a gap when
the window began may come on top."""
STARVED_PCT = 5.0
"""A flow with less than this share of what its hosts' links leave it, and of the mean flow, starves. Between
real hosts behind queues of 10 packets the slowest flow of a permutation had 10 % of the mean."""


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
        f"window, the slowest {least_mbps:.2g} of {due:.3g} Mb/s ({worst.src} to {worst.dst}): other senders "
        "may have locked them out of full queues (docs/simulator.md)"
    )
    numbers = (("starved_flows", float(len(found))), ("least_mbps", least_mbps))
    return (Reason(STARVED, text, numbers=numbers, doubts=(SLOWEST, JAIN)),)


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
