"""Selection of the flows that are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from controllers.hashing import FiveTuple
from controllers.scheduler import FlowCount, FlowRates

SHARE = 0.1
"""Share of a host's link above which a flow is scheduled (Hedera, section 4)."""


class Selection(Protocol):
    def among(self, flows: Sequence[FlowCount], now_s: float) -> list[FlowCount]: ...


class All:
    """Select every flow as soon as it is seen, as an ideal scheduler would."""

    def among(self, flows: Sequence[FlowCount], now_s: float) -> list[FlowCount]:
        del now_s
        return list(flows)


class LargeFlows:
    """Select flows whose rate since the previous tick exceeded `SHARE` of their host's link.

    A selected flow stays selected until it ends, because two flows that collide may both become slower.
    `nic_mbps` returns the rate of the link by which a flow leaves its host.
    """

    def __init__(self, nic_mbps: Callable[[FlowCount], float]) -> None:
        self._nic_mbps = nic_mbps
        self._rates = FlowRates(begun_s=0.0)
        self._large: set[FiveTuple] = set()

    def among(self, flows: Sequence[FlowCount], now_s: float) -> list[FlowCount]:
        rates = self._rates.update(flows, now_s)
        self._large = {
            each.flow
            for each in flows
            if each.flow in self._large or rates.get(each.flow, 0.0) > SHARE * self._nic_mbps(each)
        }
        return [each for each in flows if each.flow in self._large]
