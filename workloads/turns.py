"""Transfers one after the other between hosts of ours, among other tenants' traffic (topos/cloud.py).

Source: Raiciu et al., SIGCOMM 2011, section on EC2: iperf between all pairs of 40 instances in sequence,
cycling TCP and MPTCP with 2 and 4 subflows, for 12 hours. What other tenants did then nobody knows; here it
is a parameter.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

from common.draws import exponential
from common.errors import UsageError
from topos.cloud import is_ours
from workloads.flow import Flow, Traffic
from workloads.generated import MOST_FLOWS

TRANSPORTS = (1, 2, 4)
"""Subflows of the transfers of each pair, in this order; 1 is plain TCP."""
MOST_MS = 10_000_000


def in_turn(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    size_ms: int = 2000,
    busy_ms: int = 5000,
    idle_ms: int = 5000,
) -> tuple[Flow, ...]:
    """Of all ordered pairs of our hosts, in an order drawn at random and again from the beginning when all
    had their turn, one transfer by each of TRANSPORTS, as soon as the one before is done: one at a time.

    A transfer is what a host's links carry in `size_ms`. Every other tenant's host meanwhile sends to another
    tenants' host drawn at random what its links carry in `busy_ms`, then is silent for `idle_ms`, over plain
    TCP, again and again; both are means of exponential distributions, and it begins silent. Transfers come
    first, then the other tenants' flows host by host. Raises UsageError where no two hosts are ours, and for
    too many flows.
    """
    _within("size_ms", size_ms)
    _within("busy_ms", busy_ms)
    _within("idle_ms", idle_ms)
    ours = [host for host in hosts if is_ours(host)]
    others = [host for host in hosts if not is_ours(host)]
    if len(ours) < 2:
        raise UsageError(
            "workload in_turn needs two hosts of ours and maybe other tenants': choose topology cloud"
        )
    planned = traffic.seconds * 1000 * (1 / size_ms + len(others) / (busy_ms + idle_ms))
    if planned > MOST_FLOWS:
        raise UsageError(
            f"workload in_turn would plan about {planned:.0f} flows, and {MOST_FLOWS} is the most: make "
            "transfers larger or the run shorter"
        )
    rng = random.Random(seed)
    flows = _transfers(rng, ours, traffic, size_ms)
    for src in others if len(others) > 1 else ():
        flows += _neighbour(rng, src, others, traffic, busy_ms, idle_ms, len(flows))
    return tuple(flows)


def _transfers(rng: random.Random, ours: Sequence[str], traffic: Traffic, size_ms: int) -> list[Flow]:
    """As many as could be completed if each had its hosts' links to itself."""
    pairs = list(permutations(ours, 2))
    rng.shuffle(pairs)
    size_bytes = round(traffic.host_bytes_per_s * size_ms / 1000)
    turns = int(traffic.seconds * 1000 / (size_ms * len(TRANSPORTS))) + 1
    flows: list[Flow] = []
    for turn in range(turns):
        src, dst = pairs[turn % len(pairs)]
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
    """One other tenant's host; its first flow's number is `first`."""
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
    if not 1 <= value <= MOST_MS:
        raise UsageError(f"workload in_turn: {name} must be from 1 to {MOST_MS}, not {value}")
