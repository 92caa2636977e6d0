"""A flow between two hosts, and what a generator of flows is told of the run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flow:
    """One flow between two hosts, by node name: `size_bytes` of payload, 0 for as long as the run lasts,
    starting `start_s` after the common start of traffic, or, with `after`, that long after all data of the
    flow with this position in the matrix was acknowledged. A `plain` one is a competitor: reno over plain
    TCP, whatever transport the point is about; one that says how many `subflows` it has (0: as the point) has
    those, 1 being plain TCP. One of `rate_mbps` (0: none) is no transport's: full packets
    at that rate, headers included, whatever becomes of them; such flows come last in a matrix. Packets of a
    flow have the class of service `dscp` (RFC 2474)."""

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
    """How long traffic lasts, warm-up included, and the rate of all links of a host together."""

    seconds: float
    host_mbps: float

    @property
    def host_bytes_per_s(self) -> float:
        return self.host_mbps * 1e6 / 8
