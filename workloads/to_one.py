"""Many senders, one receiver: all at once (incast), or at random times.

Source: Narayan et al., Restructuring Endpoint Congestion Control, SIGCOMM 2018, evaluation: 50 senders.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from workloads import sizes as distributions
from workloads.flow import Flow, Traffic
from workloads.generated import arrivals
from workloads.limits import enough, not_too_many, within

PACKET_BYTES = 1448
"""Payload of a full segment on Ethernet, with timestamps."""
MAX_PACKETS, MAX_SPREAD_BYTES = 10**7, 10**9


def incast(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, packets: int = 100, spread_bytes: int = 12_500
) -> tuple[Flow, ...]:
    """Return a flow of `packets` full segments from every host to the last one, all at about the same time.

    Flows start at random within the time that a host's links take for `spread_bytes`: 10 us at 10 Gb/s.
    Raises UsageError for fewer than two hosts, or for numbers out of range.
    """
    enough("incast", hosts)
    within("incast", "packets", packets, 1, MAX_PACKETS)
    within("incast", "spread_bytes", spread_bytes, 0, MAX_SPREAD_BYTES)
    rng = random.Random(seed)
    spread_s = spread_bytes / traffic.host_bytes_per_s
    return tuple(
        Flow(host, hosts[-1], packets * PACKET_BYTES, rng.random() * spread_s) for host in hosts[:-1]
    )


def to_one(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, load: int = 50, sizes: str = "websearch"
) -> tuple[Flow, ...]:
    """Return flows from random hosts to the last one, which arrive as a Poisson process.

    They offer `load` percent of the receiver's links, in payload. `sizes` is a distribution
    (workloads/sizes.py). Flows are in the order of their starts. Raises UsageError for fewer than two hosts,
    a load outside 1 .. 99 or too many flows.
    """
    enough("to_one", hosts)
    within("to_one", "load", load, 1, 99)
    of_size = distributions.parse(sizes)
    per_s = load / 100 * traffic.host_bytes_per_s / of_size.mean_bytes
    not_too_many("to_one", per_s * traffic.seconds, "lower the load or the time")
    rng = random.Random(seed)
    return tuple(
        Flow(rng.choice(hosts[:-1]), hosts[-1], of_size.draw(rng), start_s)
        for start_s in arrivals(rng, per_s, traffic.seconds)
    )
