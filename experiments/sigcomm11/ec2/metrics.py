"""Metrics of sequential transfers: MPTCP's mean throughput over TCP's between the same hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis import sequential
from analysis.sequential import PairTransfers
from harness.metrics.measures import OfPoint
from harness.metrics.metric import Metric
from harness.results.summary import Judged


def _gain(among: Callable[[Sequence[PairTransfers]], list[PairTransfers]]) -> OfPoint:
    def of(point: Judged) -> float | None:
        return sequential.gain(
            among(sequential.pair_transfers(point.point.flows)), point.spec.transport.subflows
        )

    return of


GAIN_BETWEEN_RACKS = Metric(
    "gain_between_racks", "x TCP", "the mean throughput between racks over TCP's",
    _gain(sequential.between_racks),
)  # fmt: skip
GAIN_IN_A_RACK = Metric(
    "gain_in_a_rack", "x TCP", "the mean throughput inside a rack over TCP's", _gain(sequential.in_one_rack)
)
