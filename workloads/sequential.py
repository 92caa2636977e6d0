"""Sequential transfers between the hosts under test, beside other tenants' traffic (topos/cloud.py).

Source: Raiciu et al., SIGCOMM 2011, section on EC2: iperf between all pairs of 40 instances in sequence,
cycling TCP and MPTCP with 2 and 4 subflows, for 12 hours. The other tenants' traffic is not known; here it is
a parameter.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

from common.draws import exponential
from common.errors import UsageError
from topos.cloud import is_ours
from workloads.flow import MAX_FLOWS, MAX_MS, Flow, Traffic

TRANSPORTS = (1, 2, 4)
"""Subflows of the transfers of each pair, in this order; 1 is plain TCP."""


def in_turn(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    size_ms: int = 2000,
    busy_ms: int = 5000,
    idle_ms: int = 5000,
) -> tuple[Flow, ...]:
    """Return sequential transfers of all ordered pairs of hosts under test, beside other tenants' flows.

    Pairs are in random order, which repeats when all have had their transfers. Each pair makes one transfer
    by each of TRANSPORTS; each transfer starts when the previous one is complete. A transfer has the size
    that a host's links carry in `size_ms`. Every other tenant's host alternates between silence of `idle_ms`
    and a flow over plain TCP to a random other tenant's host, of the size that its links carry in `busy_ms`.
    Both are means of exponential distributions, and it begins silent. Transfers come first, then the other
    tenants' flows host by host. Raises UsageError without two hosts under test, and for too many flows.
    """
    _within("size_ms", size_ms)
    _within("busy_ms", busy_ms)
    _within("idle_ms", idle_ms)
    ours = [host for host in hosts if is_ours(host)]
    others = [host for host in hosts if not is_ours(host)]
    if len(ours) < 2:
        raise UsageError("workload in_turn needs at least two hosts under test: choose topology cloud")
    planned = traffic.seconds * 1000 * (1 / size_ms + len(others) / (busy_ms + idle_ms))
    if planned > MAX_FLOWS:
        raise UsageError(
            f"workload in_turn would plan about {planned:.0f} flows, but the limit is {MAX_FLOWS}: make "
            "transfers larger or the run shorter"
        )
    rng = random.Random(seed)
    flows = _transfers(rng, ours, traffic, size_ms)
    for src in others if len(others) > 1 else ():
        flows += _neighbour(rng, src, others, traffic, busy_ms, idle_ms, len(flows))
    return tuple(flows)


def _transfers(rng: random.Random, ours: Sequence[str], traffic: Traffic, size_ms: int) -> list[Flow]:
    """Return as many transfers as would complete if each were alone on its hosts' links."""
    pairs = list(permutations(ours, 2))
    rng.shuffle(pairs)
    size_bytes = round(traffic.host_bytes_per_s * size_ms / 1000)
    count = int(traffic.seconds * 1000 / (size_ms * len(TRANSPORTS))) + 1
    flows: list[Flow] = []
    for number in range(count):
        src, dst = pairs[number % len(pairs)]
        for subflows in TRANSPORTS:
            before = len(flows) - 1 if flows else None
            flows.append(Flow(src, dst, size_bytes, after=before, subflows=subflows))
    return flows


def _neighbour(
    rng: random.Random,
    src: str,
    others: Sequence[str],
    traffic: Traffic,
    busy_ms: int,
    idle_ms: int,
    first: int,
) -> list[Flow]:
    """Return the flows of one other tenant's host; its first flow has number `first`."""
    flows: list[Flow] = []
    spent_s = 0.0
    while spent_s < traffic.seconds:
        idle_s, alone_s = (exponential(rng) * ms / 1000 for ms in (idle_ms, busy_ms))
        dst = rng.choice(others)
        while dst == src:
            dst = rng.choice(others)
        before = first + len(flows) - 1 if flows else None
        size_bytes = max(1, round(alone_s * traffic.host_bytes_per_s))
        flows.append(Flow(src, dst, size_bytes, idle_s, plain=True, after=before))
        spent_s += idle_s + alone_s
    return flows


def _within(name: str, value: int) -> None:
    if not 1 <= value <= MAX_MS:
        raise UsageError(f"workload in_turn: {name} must be from 1 to {MAX_MS}, not {value}")
