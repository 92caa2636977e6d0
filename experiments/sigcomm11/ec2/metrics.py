"""Metrics of sequential transfers: MPTCP's mean throughput over TCP's between the same hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis import quantities, sequential
from analysis.quantities import Quantity
from analysis.sequential import PairTransfers
from harness.metrics.measures import OfPoint
from harness.metrics.metric import Metric
from harness.results.point_results import Judged


def _gain(among: Callable[[Sequence[PairTransfers]], list[PairTransfers]]) -> OfPoint:
    def of(point: Judged) -> float | None:
        return sequential.gain(
            among(sequential.pair_transfers(point.point.flows)), point.spec.transport.subflows
        )

    return of


GAIN_BETWEEN_RACKS = Metric(quantities.GAIN_BETWEEN_RACKS, _gain(sequential.between_racks))
GAIN_IN_A_RACK = Metric(
    Quantity("gain_in_a_rack", "x TCP", "the mean throughput inside a rack over TCP's"),
    _gain(sequential.in_one_rack),
)
