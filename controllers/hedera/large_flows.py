"""Which flows are worth a path of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from controllers.hashing import FiveTuple
from controllers.scheduler import FlowCount, FlowRates

SHARE = 0.1
"""Of a host's link: what flows above it get is worth scheduling (Hedera, section 4)."""


class Selection(Protocol):
    def among(self, flows: Sequence[FlowCount], now_s: float) -> list[FlowCount]: ...


class All:
    """Every flow, from the moment it is seen: what an ideal scheduler would know."""

    def among(self, flows: Sequence[FlowCount], now_s: float) -> list[FlowCount]:
        del now_s
        return list(flows)


class LargeFlows:
    """Those that since the look before have had more than `SHARE` of their host's link, by the bytes that
    were counted; once large, a flow is until it ends, for two that collide may both fall below.

    `nic_mbps` tells the rate of the link a flow leaves its host by.
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
