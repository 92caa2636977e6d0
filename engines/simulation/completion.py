"""Ideal completion time of a sized flow: alone on its path. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engines.core_setup.stack import PS_PER_S, Stack
from fabric.plan import NetworkPlan

PS_PER_BYTE_AT_1_BPS = 8 * PS_PER_S


def ideal_s(size_bytes: int, path: Sequence[int], plan: NetworkPlan, stack: Stack) -> float:
    """Return the ideal time in seconds from a flow's start until its last byte has arrived.

    The flow of `size_bytes` is alone on the ports `path` and sends at their rate from the start. The first
    packet is stored and forwarded at each hop; the others follow at the rate of the slowest port. Exact for
    equal rates.
    """
    first = min(size_bytes, stack.payload_bytes) + stack.header_bytes
    packets = -(-size_bytes // stack.payload_bytes)
    others = size_bytes + packets * stack.header_bytes - first
    rates = [int(rate) for rate in plan.rate_bps[list(path)]]
    ps = int(plan.delay_ps[list(path)].sum())
    ps += sum(first * PS_PER_BYTE_AT_1_BPS // rate for rate in rates)
    ps += others * PS_PER_BYTE_AT_1_BPS // min(rates)
    return ps / PS_PER_S
