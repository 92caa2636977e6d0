"""Loss of flows of constant rate, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from model.result import UDP, FlowRow
from model.rows import distinct


def loss_text(flows: Sequence[FlowRow]) -> str:
    """Return `16 flows of 10 Mb/s, constant: 0.52 % of 13212 packets lost`; empty without such flows."""
    if UDP not in distinct(flows, "transport"):
        return ""
    constant = [flow for flow in flows if flow.transport == UDP]
    rates = sorted({flow.rate_mbps for flow in constant})
    rate = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
    sent, lost = (sum(getattr(flow, f"{what}_pkts") for flow in constant) for what in ("sent", "lost"))
    share = 100 * lost / sent if sent else 0.0
    return f"{len(constant)} flows of {rate} Mb/s, constant: {share:.3g} % of {sent} packets lost"
