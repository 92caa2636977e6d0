"""Ideal completion time of a sized flow: alone on its path. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engines.core_setup.stack import PS_PER_S, Stack
from fabric.plan import NetworkPlan

PS_PER_BYTE_AT_1_BPS = 8 * PS_PER_S


def ideal_s(size_bytes: int, path: Sequence[int], plan: NetworkPlan, stack: Stack) -> float:
    """Return the ideal time in seconds from a flow's start until its last byte has arrived.

    The flow of `size_bytes` is alone on the ports `path` and sends at their rate from the start, packet after
    packet. Every node stores a packet before it forwards it. Exact for any rates: full packets follow each
    other at the pace of the slowest port so far, and the last packet, which may be shorter, waits at each
    port for the packet before it.
    """
    packets = -(-size_bytes // stack.payload_bytes)
    full = stack.payload_bytes + stack.header_bytes
    last = size_bytes - (packets - 1) * stack.payload_bytes + stack.header_bytes
    arrived = first_departed = slowest = 0  # arrival of the last packet, departure of the first
    for port in path:
        rate, delay = int(plan.rate_bps[port]), int(plan.delay_ps[port])
        takes = full * PS_PER_BYTE_AT_1_BPS // rate
        slowest = max(slowest, takes)
        first_departed += takes
        last_but_one_departed = first_departed + (packets - 2) * slowest if packets > 1 else 0
        arrived = max(arrived, last_but_one_departed) + last * PS_PER_BYTE_AT_1_BPS // rate + delay
        first_departed += delay
    return arrived / PS_PER_S
