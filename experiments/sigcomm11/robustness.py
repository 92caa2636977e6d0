"""robustness: what MPTCP costs in losses, retransmissions and CPU time, and how it survives failing links.

SIGCOMM 2011 (Raiciu et al.) on a FatTree k=8 under a random permutation. Failure: all links of a quarter of
the core switches are down during the middle third of the window.

The statements are the paper's on robustness, as recalled: directions, judged by ratios, without digits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from analysis import robustness
from analysis.quantities import Quantity
from engines.registry import SIMULATOR
from experiments.sigcomm11.statements import SIGCOMM11
from harness.experiment import Experiment, Figure, RateOf
from harness.metrics.measures import OfPoint, over_tcp, ratio, together
from harness.metrics.metrics import JAIN_OVER_TCP, Metric
from harness.metrics.published import ABOVE, BELOW, SIGN, Published, Relation, Source
from harness.options.options import SweepOptions, on_real_hosts
from harness.plan.sweeps import fat_trees, points_on, with_core_failure
from harness.results.point_results import PointResult
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.links import outage
from model.result import Table
from model.spec import RunSpec, Settings
from model.transports import algorithm


def _any_cc(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, transport=dataclasses.replace(spec.transport, cc=BASELINE))


def _while_down(value_of: Callable[[Table, tuple[float, float]], float | None]) -> OfPoint:
    """Return a function: `value_of` a point's goodput over time and its outage (start and end in s); None
    without either."""

    def of(point: PointResult) -> float | None:
        goodput, down = point.read_table("goodput"), outage(point.spec)
        return value_of(goodput, down) if goodput is not None and down else None

    return of


def _stalled_pct(point: PointResult) -> float | None:
    rate_mbps = point.spec.link.rate_mbps
    return _while_down(lambda goodput, down: robustness.stalled_pct(goodput, down, rate_mbps))(point)


def _retransmitted_over_uncoupled(points: Sequence[PointResult]) -> float | None:
    percent = {_algorithm(p.spec): robustness.retransmitted_pct(p.flows) for p in points}
    return ratio(percent.get(COUPLED_DEFAULT), percent.get(BASELINE))


def _algorithm(spec: RunSpec) -> str:
    return algorithm(spec.transport.cc, spec.transport.subflows, spec.routing)


RETRANSMITTED_OVER_UNCOUPLED = Metric(
    Quantity(
        "resent_over_uncoupled",
        "x uncoupled",
        "segments retransmitted for each delivered one, over those of uncoupled subflows",
    ),
    over=together(_retransmitted_over_uncoupled),
    setting=_any_cc,
)
KEPT_OVER_TCP = Metric(
    Quantity(
        "kept_over_tcp", "x TCP", "the share of the goodput that remains while links are down, over TCP's"
    ),
    over=over_tcp(_while_down(robustness.kept_pct)),
)
STALLED_OVER_TCP = Metric(
    Quantity("stalled_over_tcp", "x TCP", "the share of flows that stall while links are down, over TCP's"),
    over=over_tcp(_stalled_pct),
)


def _recalled(metric: Metric, subflows: int, relation: Relation, words: str) -> Published:
    """FatTree k=8, random permutation; MPTCP with the paper's own congestion control."""
    row = Published(
        metric, "fat_tree", 8, "one_to_one", subflows, relation, 1, Source.RECALLED, words, "SIGCOMM'11",
        SIGCOMM11, *SIGN,
    )  # fmt: skip
    return row.under("lia")


COST = (
    _recalled(JAIN_OVER_TCP, 8, ABOVE, "8 subflows share more evenly than TCP"),
    _recalled(RETRANSMITTED_OVER_UNCOUPLED, 8, BELOW, "coupled subflows retransmit less than uncoupled ones"),
)
FAILURES = (
    _recalled(KEPT_OVER_TCP, 8, ABOVE, "8 subflows keep more of their goodput than TCP"),
    _recalled(STALLED_OVER_TCP, 8, BELOW, "fewer of their flows stall than of TCP's"),
)


NAME = "robustness"


def each_transport(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the usual points, with TCP only once, not once per congestion control of MPTCP."""
    points = points_on(fat_trees)(options, rate_of)
    first = points[0].transport.cc
    return [point for point in points if point.transport.subflows > 1 or point.transport.cc == first]


COST_DEFAULTS: Settings = {
    "k": (8,), "workload": ("one_to_one",), "transport.subflows": (1, 2, 4, 8),
    "transport.cc": ("lia", "reno"), "engine": (SIMULATOR,),
}  # fmt: skip
FAILURE_DEFAULTS: Settings = {
    "k": (8,), "workload": ("one_to_one",), "transport.subflows": (1, 2, 8), "transport.cc": ("lia",),
    "engine": (SIMULATOR,),
    "warmup_s": 2.0, "seconds": 12.0,
}  # fmt: skip
LOSS_AND_COST = Figure(
    name=f"{NAME}-cost",
    title="Loss, retransmissions, fairness and CPU time by subflows",
    about=(
        "A random permutation over TCP and over coupled and uncoupled MPTCP. With uncoupled subflows losses "
        "rise with their number; with coupled ones they are fewer than with TCP; both share evenly. For "
        "real hosts the chart also shows the CPU time per delivered gigabyte."
    ),
    defaults=COST_DEFAULTS,
    emulated=on_real_hosts(
        COST_DEFAULTS, {"k": (4,), "transport.subflows": (1, 8), "warmup_s": 8.0, "seconds": 10.0}
    ),
    topologies=fat_trees,
    points=each_transport,
    charts=("loss_and_cost",),
    published=COST,
    relative=False,
)
LINK_FAILURE = Figure(
    name=f"{NAME}-failure",
    title="A quarter of the core fails and recovers",
    about=(
        "In the middle third of the window the links of a quarter of the core switches are down, and routing "
        "does not react. TCP flows whose path is cut stall until long after it is restored. MPTCP flows "
        "continue over their other subflows."
    ),
    defaults=FAILURE_DEFAULTS,
    emulated=on_real_hosts(
        FAILURE_DEFAULTS, {"k": (4,), "transport.subflows": (1, 8), "warmup_s": 12.0, "seconds": 24.0}
    ),
    topologies=fat_trees,
    points=points_on(fat_trees, adapt=with_core_failure),
    charts=("failure",),
    published=FAILURES,
    relative=False,
)


EXPERIMENT = Experiment(
    name=NAME,
    title="Cost and robustness of MPTCP: loss, retransmissions, CPU time, failing links (SIGCOMM 2011)",
    folder=NAME,
    figures=(LOSS_AND_COST, LINK_FAILURE),
)
SINGLE = tuple(figure.alone(NAME) for figure in EXPERIMENT.figures)
