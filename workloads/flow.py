"""A flow between two hosts, and what generators of flows share: draws, and checks of parameters.

Each check raises UsageError with the workload's name and a remedy. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import UsageError


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow between two hosts, by node name.

    It sends `size_bytes` of payload; 0 means until the run ends. It starts `start_s` after the common start
    of traffic; with `after`, `start_s` after all data of the flow at that position in the matrix was
    acknowledged. A `plain` flow is a competitor: reno over plain TCP, whatever transport the point is about.
    `subflows` is the flow's own number of subflows (1: plain TCP; 0: as the point). With `rate_mbps` > 0 the
    flow has no transport: it sends full packets at that rate, headers included, regardless of losses; such
    flows come last in a matrix. Its packets have the class of service `dscp` (RFC 2474).
    """

    src: str
    dst: str
    size_bytes: int = 0
    start_s: float = 0.0
    plain: bool = False
    after: int | None = None
    rate_mbps: float = 0.0
    dscp: int = 0
    subflows: int = 0


@dataclass(frozen=True)
class Traffic:
    """Duration of traffic, including warm-up, and the total rate of a host's links."""

    seconds: float
    host_mbps: float

    @property
    def host_bytes_per_s(self) -> float:
        return self.host_mbps * 1e6 / 8


MAX_FLOWS = 400_000
MAX_MESH = 1_200_000
"""The same for matrices that join every host with many others: 1024 hosts have 1 047 552 pairs."""
MAX_MS = 10_000_000
MAX_KB = 10**9


def at_least(matrix: str, name: str, value: int, minimum: int) -> None:
    """Raise UsageError for a `value` below `minimum`."""
    if value < minimum:
        raise UsageError(f"workload {matrix}: {name} must be at least {minimum}, not {value}")


def within(matrix: str, name: str, value: int, least: int, most: int) -> None:
    """Raise UsageError for a `value` outside `least` to `most`."""
    if not least <= value <= most:
        raise UsageError(f"workload {matrix}: {name} must be from {least} to {most}, not {value}")


def percentage(matrix: str, name: str, value: int, minimum: int) -> None:
    """Raise UsageError for a `value` outside `minimum` to 100 percent."""
    if not minimum <= value <= 100:
        raise UsageError(f"workload {matrix}: {name} must be from {minimum} to 100 percent, not {value}")


def enough(matrix: str, hosts: Sequence[str]) -> None:
    """Raise UsageError for fewer than two hosts."""
    if len(hosts) < 2:
        raise UsageError(f"workload {matrix} needs at least two hosts, not {len(hosts)}: change k or n")


def others(matrix: str, name: str, needed: int, hosts: int) -> None:
    """Raise UsageError unless every one of `hosts` hosts has `needed` other hosts."""
    if hosts <= needed:
        raise UsageError(
            f"workload {matrix} needs more than {needed} hosts ({name} {needed}), not {hosts}: change k or n"
        )


def not_too_many(matrix: str, flows: float, remedy: str, most: int = MAX_FLOWS) -> None:
    """Raise UsageError for more than `most` flows, expected or counted."""
    if flows > most:
        raise UsageError(
            f"workload {matrix} would start about {flows:.0f} flows, but the limit is {most}: {remedy}"
        )


def anybody_else(rng: random.Random, hosts: Sequence[str], host: str) -> str:
    """Draw a host uniformly from the others, by repeated draws instead of a list without it."""
    while (drawn := rng.choice(hosts)) == host:
        pass
    return drawn


def permuted(matrix: str, hosts: Sequence[str], rng: random.Random) -> dict[str, str]:
    """Return the receiver of each host in a random permutation, drawn as in the CS244 2013 reproduction.

    Hosts are shuffled and split into two halves, and each half is matched at random to the other (source:
    code). An odd number of shuffled hosts forms a ring. Raises UsageError for fewer than two hosts.
    """
    enough(matrix, hosts)
    shuffled = rng.sample(hosts, len(hosts))
    if len(hosts) % 2:
        return dict(zip(shuffled, [*shuffled[1:], shuffled[0]], strict=True))
    half = len(hosts) // 2
    first, second = shuffled[:half], shuffled[half:]
    receiver = dict(zip(first, rng.sample(second, half), strict=True))
    receiver.update(zip(second, rng.sample(first, half), strict=True))
    return receiver
