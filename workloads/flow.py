"""A flow between two hosts, and the properties of a run that generators of flows need."""

from __future__ import annotations

from dataclasses import dataclass


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
