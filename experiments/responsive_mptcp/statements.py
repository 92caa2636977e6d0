"""Table I of the slides as statements: order and ratios first, then levels.

Tolerances were set before any run.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from analysis.completion import mean_job_s
from analysis.quantities import Quantity
from harness.metrics import measures
from harness.metrics.measures import OfPoint
from harness.metrics.metrics import GOODPUT_MBPS_MEAN, Metric, between
from harness.metrics.published import Bound, Published, Relation, Source
from harness.options.options import UNSCHEDULED
from harness.results.point_results import PointResult
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.result import under_test
from model.spec import RESPONSIVE as CONTROLLER
from model.spec import RunSpec, SchedulerSpec, StackSpec
from workloads.pairs import MAPS, REDUCES

MAX_SUBFLOWS = 4
STACK = StackSpec(min_rto_ms=10.0, delayed_ack_ms=1.0)
"""The slides do not say how their hosts were set; ns-3's own minimum RTO is 1 s, longer than our windows."""
HEDERA = SchedulerSpec("annealing", 10.0)
"""Hedera's better algorithm (NSDI 2010), at an interval that is short against our windows."""


@dataclass(frozen=True)
class Scheme:
    """One row of the table: its name there, and the settings of its points."""

    label: str
    subflows: int
    scheduler: SchedulerSpec = UNSCHEDULED
    cc: str = COUPLED_DEFAULT
    colour: str = "#777777"
    marker: str = "o"

    @property
    def curve(self) -> dict[str, Any]:
        """What its points have, by path."""
        return {
            "transport.cc": self.cc,
            "transport.subflows": self.subflows,
            "scheduler": self.scheduler,
            "stack": STACK,
        }

    @property
    def where(self) -> dict[str, Any]:
        """The values of its points, by path."""
        return {"transport.cc": self.cc, "scheduler": self.scheduler, "routing": "hashed"}

    def has(self, spec: RunSpec) -> bool:
        return spec.transport.subflows == self.subflows and all(
            operator.attrgetter(path)(spec) == value for path, value in self.where.items()
        )


def responsive(monitor_ms: float, demand_gap: float, **others: float | bool) -> SchedulerSpec:
    return SchedulerSpec(CONTROLLER, monitor_ms, demand_gap, **others)  # type: ignore[arg-type]


FAST, MEDIUM, SLOW = responsive(2.0, 0.15), responsive(4.0, 0.25), responsive(8.0, 0.35)
R2 = Scheme("responsive, 2 ms, .15", MAX_SUBFLOWS, FAST, colour="#D55E00", marker="o")
R4 = Scheme("responsive, 4 ms, .25", MAX_SUBFLOWS, MEDIUM, colour="#E69F00", marker="s")
R8 = Scheme("responsive, 8 ms, .35", MAX_SUBFLOWS, SLOW, colour="#F0E442", marker="D")
ECMP4 = Scheme("4 subflows, ECMP", 4, colour="#0072B2", marker="^")
ECMP2 = Scheme("2 subflows, ECMP", 2, colour="#56B4E9", marker="v")
ECMP8 = Scheme("8 subflows, ECMP", 8, colour="#332288", marker="P")
WITH_HEDERA = Scheme("1 subflow, Hedera", 1, HEDERA, BASELINE, "#009E73", "*")
FIRST_FIT = replace(
    WITH_HEDERA, label="1 subflow, first fit", scheduler=SchedulerSpec("first_fit", 10.0), marker="X"
)
TABLE = (R2, R4, R8, ECMP4, ECMP2, WITH_HEDERA)


def subflows(point: PointResult) -> float | None:
    """Return the mean number of subflows of flows, at the end of the run or of the flow."""
    flows = under_test(point.flows)
    return sum(flow.subflows_joined for flow in flows) / len(flows) if flows else None


def job_ms(point: PointResult) -> float | None:
    """Return the mean completion time of jobs; None if a job did not complete."""
    params = point.spec.workload.params
    each = int(params.get("maps", MAPS)) * int(params.get("reduces", REDUCES))
    mean_s = mean_job_s(point.flows, each)
    return None if mean_s is None else 1000 * mean_s


def _name(scheme: Scheme) -> str:
    if scheme.scheduler.interval_ms and scheme.subflows > 1:
        return f"responsive_{scheme.scheduler.interval_ms:g}ms"
    return "hedera" if scheme.subflows == 1 else f"ecmp_{scheme.subflows}"


SUBFLOWS = Metric(Quantity("subflows_mean", "subflows", "the mean number of subflows of a flow"), subflows)
JOB_MS = Metric(Quantity("job_ms", "ms", "the mean completion time of a job"), job_ms)


def _over(scheme: Scheme, other: Scheme, name: str, about: str, value_of: OfPoint) -> Metric:
    quantity = Quantity(
        f"{_name(scheme)}_{name}over_{_name(other)}", f"x {other.label}", f"{about}: {scheme.label}"
    )
    one, two = ({**each.where, "transport.subflows": each.subflows} for each in (scheme, other))
    return between(quantity, value_of, one, two)


@functools.cache
def throughput_over(scheme: Scheme, other: Scheme) -> Metric:
    return _over(scheme, other, "", "the mean goodput of a flow", measures.goodput_mbps)


@functools.cache
def job_over(scheme: Scheme, other: Scheme) -> Metric:
    return _over(scheme, other, "job_", "the mean completion time of a job", job_ms)


CITATION = "Duan, Responsive Multipath TCP in SDN-based Datacenters, slides, University of Hong Kong, 2015"
RANDOM, PERMUTATION, SHUFFLE = "connections_per_host:1", "one_to_one", "map_reduce:0"
SIGN = 0.0, "the order alone is judged"
RATIO = 0.03, "the three settings of the slides differ by as much"
TIMES = 0.05, "the ratios of the slides' three settings span 4 %"
LEVEL_MBPS = 80.0, "stack, queues and delays are ours: a tenth of a link is the limit here"
LEVEL_MS = 160.0, "sizes are ours, so that Hedera's takes 1.6 s: a tenth of that is the limit here"
COUNT = 0.4, "a tenth of four subflows"


Row = tuple[float, float]
"""Subflows per flow and throughput in Mb/s; in the shuffle the completion time of a job, in ms."""
TABLE_I: Mapping[str, Mapping[Scheme, Row]] = {
    RANDOM: {
        R2: (3.72, 521), R4: (3.40, 513), R8: (2.47, 506), ECMP4: (4, 530), ECMP2: (2, 493),
        WITH_HEDERA: (1, 438),
    },
    PERMUTATION: {
        R2: (3.88, 766), R4: (3.82, 767), R8: (3.75, 760), ECMP4: (4, 734), ECMP2: (2, 643),
        WITH_HEDERA: (1, 747),
    },
    SHUFFLE: {
        R2: (1.92, 1402), R4: (1.28, 1441), R8: (1.03, 1454), ECMP4: (4, 1332), ECMP2: (2, 1394),
        WITH_HEDERA: (1, 1652),
    },
}  # fmt: skip
RESPONSIVE = (R2, R4, R8)


def _row(
    metric: Metric, workload: str, bound: Bound, words: str, within: tuple[float, str], quote: str
) -> Published:
    return Published(
        metric, "fat_tree", 8, workload, 4, *bound, Source.TEXT, words, "HKU 2015", CITATION, *within,
        section="Table I", quote=quote,
    )  # fmt: skip


def _of(scheme: Scheme, row: Published) -> Published:
    """Return the statement about the points of one scheme."""
    return dataclasses.replace(row, subflows=scheme.subflows, where=scheme.where)


def _cells(workload: str, *schemes: Scheme) -> str:
    """Return the throughputs or completion times of schemes, as the table has them."""
    values = " and ".join(f"{TABLE_I[workload][each][1]:g}" for each in schemes)
    return f"{values} {'ms' if workload == SHUFFLE else 'Mb/s'}"


def _ratio(one: Scheme, other: Scheme, workload: str) -> float:
    return TABLE_I[workload][one][1] / TABLE_I[workload][other][1]


def _above(one: Scheme, other: Scheme, relation: Relation = Relation.ABOVE) -> Published:
    """Return the statement on the order of two schemes under the permutation."""
    words = f"{one.label} carries {'at least as much as' if relation is Relation.AT_LEAST else 'more than'}"
    return _row(
        throughput_over(one, other), PERMUTATION, (relation, 1), f"{words} {other.label}", SIGN,
        _cells(PERMUTATION, one, other),
    )  # fmt: skip


def _subflows(workload: str) -> tuple[Published, ...]:
    """Return the mean subflows of each responsive scheme."""
    counts = {scheme: TABLE_I[workload][scheme][0] for scheme in RESPONSIVE}
    return tuple(
        _of(s, _row(
            SUBFLOWS, workload, (Relation.ABOUT, n), f"{s.label} has {n:g} subflows per flow", COUNT,
            f"{n:.2f} subflows",
        ))
        for s, n in counts.items()
    )  # fmt: skip


def _levels(workload: str) -> tuple[Published, ...]:
    """Return mean subflows and throughput of each scheme; subflows of responsive ones only."""
    rates = (
        _of(s, _row(
            GOODPUT_MBPS_MEAN, workload, (Relation.ABOUT, mbps), f"{s.label} carries {mbps:g} Mb/s",
            LEVEL_MBPS, _cells(workload, s),
        ))
        for s, (_, mbps) in TABLE_I[workload].items()
    )  # fmt: skip
    return (*_subflows(workload), *rates)


def _of_four_subflows(scheme: Scheme) -> Published:
    value = _ratio(scheme, ECMP4, RANDOM)
    return _row(
        throughput_over(scheme, ECMP4), RANDOM, (Relation.ABOUT, value),
        f"{scheme.label} carries {100 * value:.0f} % of 4 subflows", RATIO, _cells(RANDOM, scheme, ECMP4),
    )  # fmt: skip


def _longer(scheme: Scheme, name: str) -> Published:
    value = _ratio(scheme, ECMP4, SHUFFLE)
    return _row(
        job_over(scheme, ECMP4), SHUFFLE, (Relation.ABOUT, value),
        f"jobs take {100 * (value - 1):.0f} % longer with {name} than with 4 subflows", TIMES,
        _cells(SHUFFLE, scheme, ECMP4),
    )  # fmt: skip


def _took(scheme: Scheme, ms: float) -> Published:
    return _of(scheme, _row(
        JOB_MS, SHUFFLE, (Relation.ABOUT, ms), f"a job takes {ms:g} ms with {scheme.label}", LEVEL_MS,
        _cells(SHUFFLE, scheme),
    ))  # fmt: skip


THROUGHPUT = (
    *(_above(scheme, WITH_HEDERA, Relation.AT_LEAST) for scheme in RESPONSIVE),
    _above(WITH_HEDERA, ECMP4),
    _above(ECMP4, ECMP2),
    *map(_of_four_subflows, RESPONSIVE),
    *_levels(RANDOM),
    *_levels(PERMUTATION),
)
JOBS = (
    *(_longer(scheme, scheme.label) for scheme in RESPONSIVE),
    _longer(WITH_HEDERA, "Hedera"),
    *_subflows(SHUFFLE),
    *(_took(scheme, ms) for scheme, (_, ms) in TABLE_I[SHUFFLE].items()),
)
