"""load-balancing: ECMP, LetFlow, CONGA and DRILL under TCP, and MPTCP, on a leaf-spine with a halved link.

CONGA's testbed (Alizadeh et al., SIGCOMM 2014, section 5: 64 hosts at 10 Gb/s, two leaves, two spines, 2:1
oversubscribed, one of a leaf's two links to a spine down) with a quarter of its hosts and a hundredth of its
rates, between Linux hosts a thousandth. All times are 200 times the paper's (round trip 20 ms, flowlet gap
100 ms, tau 32 ms); sizes of flows are the same.

The load is in percent of the hosts' links, of which 8 in 15 bytes cross the spines: 60 % are 64 % of the
uplinks, and 85 % of what is left of them. Statements and tolerances were set before any run.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.completion import times_ms
from analysis.quantities import Quantity
from controllers.routing import parse
from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.metrics.measures import Estimate, Measure, Subject, kept, measured_over, points_about, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import ABOUT_ONE, ABOVE_ONE, SIGN, Bound, Published, Source
from harness.options.options import SweepOptions, on_real_hosts
from harness.plan.sweeps import PLAIN_TCP, points_on
from harness.results.point_results import PointResult
from model.spec import LinkEvent, RunSpec, Settings, TopologySpec

NAME = "load-balancing"
NETWORK = TopologySpec("leaf_spine", {"leaves": 2, "spines": 2, "hosts": 8, "speed": 2})
HALVED = (LinkEvent(0.0, "l1", "s1", 0.5),)
GAP_US, TAU_US = 100_000, 32_000
ECMP, LETFLOW, CONGA, DRILL = "ecmp", f"letflow:{GAP_US}", f"conga:{GAP_US}:{TAU_US}", "drill:2:1"
SUBFLOWS = 8
CURVES = (
    {**PLAIN_TCP, "routing": ECMP},
    {"routing": ECMP},  # MPTCP
    *({**PLAIN_TCP, "routing": policy} for policy in (LETFLOW, CONGA, DRILL)),
)
HIGHEST = "poisson:60"
DEFAULTS: Settings = {
    "k": (2,), "workload": ("poisson:30", HIGHEST), "transport.subflows": (SUBFLOWS,), "engine": (SIMULATOR,),
    "link.rate_mbps": 100.0, "warmup_s": 5.0, "seconds": 60.0, "seeds": 6, "smoke.seconds": 20.0,
    "smoke.seeds": 1,
    "link.delay_us": 2500.0, "events": HALVED,
}  # fmt: skip
REAL = on_real_hosts(DEFAULTS, {
    "workload": (HIGHEST,),
    "link.rate_mbps": 10.0, "warmup_s": 3.0, "seconds": 30.0, "seeds": 3,
    "traffic": "native",
})  # fmt: skip
"""A point takes 40 s in real time."""


def _networks(_: SweepOptions) -> list[TopologySpec]:
    return [NETWORK]


def _mean_ms(point: PointResult) -> float | None:
    times, _ = times_ms(point.flows, point.spec.seconds)
    return statistics.fmean(times) if times else None


def _unfinished_pct(point: PointResult) -> float | None:
    times, unfinished = times_ms(point.flows, point.spec.seconds)
    return 100 * unfinished / len(times) if times else None


MEAN_MS = kept("counted_fct_ms_mean", _mean_ms)
UNFINISHED_PCT = kept("counted_fct_unfinished_pct", _unfinished_pct)


def _over(one: str, other: str) -> Measure:
    """Return a measure: the mean completion time under policy `one` over that under `other`, TCP at each
    seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        seeds: dict[int, dict[str, PointResult]] = {}
        for point in points_about(points, subject):
            if point.subflows == 1:
                seeds.setdefault(point.spec.seed, {})[parse(point.spec.routing)[0]] = point
        both = [(seed[one], seed[other]) for seed in seeds.values() if {one, other} <= seed.keys()]
        values = ((ratio(MEAN_MS(a), MEAN_MS(b)), (a, b)) for a, b in both)
        return measured_over(values, UNFINISHED_PCT)

    return measure


def _setting(spec: RunSpec) -> RunSpec:
    return spec.neutral("routing", "transport.cc", "transport.subflows")


def _metric(one: str, other: str) -> Metric:
    name, words = f"fct_{one}_over_{other}", f"the mean completion time under {one} over that under {other}"
    return Metric(Quantity(name, f"x {other}", words), over=_over(one, other), setting=_setting)


CONGA14 = "Alizadeh et al., CONGA: Distributed Congestion-Aware Load Balancing for Datacenters, SIGCOMM 2014"
LETFLOW17 = (
    "Vanini et al., Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching, NSDI 2017"
)


def _row(
    metric: Metric, bound: Bound, words: str, paper: str, citation: str, tolerance: tuple[float, str]
) -> Published:
    row = Published(
        metric, NETWORK.kind, NETWORK.k, HIGHEST, 1, *bound, Source.RECALLED, words, paper, citation,
        *tolerance,
        section="testbed with a failed link",
    )  # fmt: skip
    return row.on(**{name: NETWORK.number(name) for name in ("spines", "hosts", "speed")})


STATEMENTS = (
    _row(
        _metric("ecmp", "conga"), ABOVE_ONE, "with a failed link flows complete far earlier than under ECMP",
        "CONGA'14", CONGA14, SIGN,
    ).with_caveat("The paper's factor of 5 is for other flow sizes; only the direction is judged."),
    _row(
        _metric("letflow", "conga"), ABOUT_ONE, "LetFlow is within 10 to 20 % of CONGA on CONGA's testbed",
        "LetFlow'17", LETFLOW17, (0.25, "20 % and the spread of a shorter run"),
    ),
)  # fmt: skip

EXPERIMENT = Experiment(
    name=NAME,
    title="ECMP, MPTCP, LetFlow, CONGA and DRILL on a leaf-spine with a halved link (after SIGCOMM 2014)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Load balancing on an asymmetric leaf-spine",
            about=(
                "One of four uplinks has half its rate. ECMP sends it half of the flows, and it overflows "
                "at about half load. LetFlow's flowlets and CONGA's measured paths avoid it, hosts stay as "
                "they are; MPTCP moves its traffic by its subflows' windows, and DRILL sees the queues of "
                "its own switch alone."
            ),
            defaults=DEFAULTS,
            emulated=REAL,
            topologies=_networks,
            points=points_on(_networks, CURVES),
            charts=("fct_by_load",),
            published=STATEMENTS,
            sized=False,
            relative=False,
        ),
    ),
)
