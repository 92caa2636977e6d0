"""ims: a SIP core whose bottleneck moves as the load grows, and a controller that scales what is overloaded.

After the slides of Duan (University of Hong Kong, 2015), who ran Project Clearwater. Values that the slides
do not state are our assumptions, listed in docs/experiments/ims.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from analysis.quantities import Quantity
from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.labels import workload_label
from harness.metrics import measures
from harness.metrics.measures import Estimate, Measure, OfPoint, Subject, is_about, measured_over, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import ENGINE, SweepOptions
from harness.plan.sweeps import PLAIN_TCP, points_on
from harness.results.point_results import PointResult
from model.spec import Settings, TopologySpec
from workloads.sip import MATRIX, POLICIES

REAL_SCALE = 50
"""Percent of the published rates that two cores carry with real hosts; service times grow by the inverse."""


@dataclass(frozen=True)
class LadderStep:
    """One step: calls per second, and instances of both functions. `words` say why it is there."""

    calls: int
    pcscf: int
    scscf: int
    words: str

    def workload(self, scale: int = 100) -> str:
        """Return the workload as typed. SIPp starts calls at constant intervals, so scaled steps do, too."""
        instances = (("pcscf", self.pcscf), ("scscf", self.scscf))
        parts = [f"{name}={count}" for name, count in instances if count > 1]
        scaled = [f"scale={scale}", "arrivals=constant"] if scale != 100 else []
        return ":".join([MATRIX, str(self.calls), *parts, *scaled])


FIRST = LadderStep(130, 1, 1, "the published first load")
MORE_S = LadderStep(130, 1, 2, "after the S-CSCF was scaled")
SECOND = LadderStep(180, 1, 2, "the published second load")
MORE_P = LadderStep(180, 2, 2, "after the P-CSCF was scaled")
THIRD = LadderStep(320, 2, 2, "the published third load")
NEXT = LadderStep(360, 3, 2, "more load, after the P-CSCF was scaled again")
PUBLISHED_LOADS = (FIRST.calls, SECOND.calls, THIRD.calls)
"""Calls per second that the slides name."""
LADDER = (FIRST, MORE_S, SECOND, MORE_P, THIRD, NEXT)


def _lead_s(first: str, other: str) -> OfPoint:
    """Return how much sooner, in s, the receive buffer of `first` was half full than that of `other`. A
    buffer that never was counts as half full at the end of the run."""

    def of(point: PointResult) -> float | None:
        ends_s = point.spec.warmup_s + point.spec.seconds
        ours, theirs = (point.metric(f"{role}_onset_s") for role in (first, other))
        if ours is None and theirs is None:
            return None
        return (ends_s if theirs is None else theirs) - (ends_s if ours is None else ours)

    return of


def _failed_pct(point: PointResult) -> float | None:
    offered, failed = point.metric("calls_offered_per_s"), point.metric("calls_failed_per_s")
    return 100 * failed / offered if offered and failed is not None else None


def over(name: str, before: str, workload_before: Callable[[str], str]) -> Measure:
    """Return a measure: metric `name` of the subject's workload over metric `before` of the workload before
    it, at the same seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        wanted = workload_before(subject.workload)
        others = {p.spec.seed: p for p in points if workload_label(p.spec) == wanted}
        ours = [p for p in points if is_about(subject, p) and p.spec.seed in others]
        pairs = [(point, others[point.spec.seed]) for point in ours]
        return measured_over((ratio(a.metric(name), b.metric(before)), (a, b)) for a, b in pairs)

    return measure


S_FIRST = Metric(
    Quantity("scscf_leads_s", "s", "how much sooner the S-CSCF's buffer is half full than the P-CSCF's"),
    _lead_s("scscf", "pcscf"),
)  # fmt: skip
P_FIRST = Metric(
    Quantity("pcscf_leads_s", "s", "how much sooner the P-CSCF's buffer is half full than the S-CSCF's"),
    _lead_s("pcscf", "scscf"),
)  # fmt: skip
FAILED_PCT = Metric(Quantity("calls_failed_pct", "% of calls", "calls that failed"), _failed_pct)
EARLY_PCT = Metric(
    Quantity("early_setup_pct", "% of calls", "calls of the first 3 s that were set up"),
    measures.recorded("early_setup_pct"),
)  # fmt: skip
S_BUSY_PCT = Metric(
    Quantity("scscf_busy_pct", "% of the time", "the time in which an S-CSCF's workers are busy or wait"),
    measures.recorded("scscf_busy_pct"),
)  # fmt: skip


CITATION = (
    "Duan, Responsive Multipath TCP in SDN-based Datacenters, slides, University of Hong Kong, 2015, on "
    "scaling network functions"
)
TOPOLOGY, HOSTS = "star", 14
OURS = (
    "The slides state no service times. Ours put the published loads between the computed knees, so which "
    "function overloads follows from them; how it looks does not."
)
QUOTES = {
    FIRST: "S-CSCF: blocking look-ups of user data in the database; fails to serve some calls",
    SECOND: "P-CSCF: non-blocking proxy; the latency of requests rises drastically",
    THIRD: "P-CSCF again",
    NEXT: "S-CSCF is next if the load goes on rising",
}
"""The slides' words on a step as our notes have them."""
SIGN = 0.0, "the order alone is judged"
SOME = 1.0, "more than one call in a hundred"
STEP_BEFORE = {
    step.workload(scale): before.workload(scale)
    for scale in (100, REAL_SCALE)
    for before, step in pairwise(LADDER)
}
SETUP_OVER = Metric(
    Quantity("setup_over_before", "x the step before", "the median setup time of a call"),
    over=over("setup_ms_p50", "setup_ms_p50", STEP_BEFORE.__getitem__),
)
EARLY_OVER = Metric(
    Quantity(
        "early_setup_over_before", "x the step before", "the median setup time of calls of the first 3 s"
    ),
    over=over("early_setup_ms_p50", "setup_ms_p50", STEP_BEFORE.__getitem__),
)


def _row(
    step: LadderStep, metric: Metric, relation: Relation, value: float, words: str, because: str
) -> tuple[Published, ...]:
    """Return the statement about the simulator at the published rates, and about either engine at the scale
    of real hosts."""
    simulated = Published(
        metric, TOPOLOGY, HOSTS, step.workload(), 1, relation, value, Source.TEXT, words,
        "HKU 2015", CITATION, 0.0, because, engine=SIMULATOR, caveat=OURS,
        section="Overload and scaling", quote=QUOTES.get(step, ""),
    )  # fmt: skip
    scaled = replace(simulated, workload=step.workload(REAL_SCALE))
    return (simulated, replace(scaled, engine=""))


def _expected(rows: tuple[Published, ...]) -> tuple[Published, ...]:
    """Return the rows with source EXPECTED: the mechanism implies them, the slides do not state them."""
    return tuple(replace(row, source=Source.EXPECTED, section="", quote="") for row in rows)


PUBLISHED = (
    *_row(FIRST, S_FIRST, Relation.ABOVE, 0, "at 130 calls per second the S-CSCF overloads first", SIGN[1]),
    *_row(FIRST, FAILED_PCT, Relation.ABOVE, 1, "the overloaded S-CSCF fails to serve some calls", SOME[1]),
    *_expected(
        _row(MORE_S, FAILED_PCT, Relation.BELOW, 1, "with two S-CSCFs 130 calls/s are served", SOME[1])
    ),
    *_row(SECOND, P_FIRST, Relation.ABOVE, 0, "at 180 calls per second the P-CSCF overloads first", SIGN[1]),
    *_row(
        SECOND, SETUP_OVER, Relation.ABOVE, 3, "the latency of requests rises drastically",
        "three times the step before counts as drastic",
    ),
    *_expected(
        _row(
            SECOND, EARLY_OVER, Relation.ABOVE, 3, "the latency rises in the first 3 s of the overload",
            "three times the step before",
        )
    ),
    *_expected(
        _row(
            SECOND, EARLY_PCT, Relation.ABOVE, 95, "calls of these 3 s are still set up",
            "no more than one in twenty fails",
        )
    ),
    *_expected(
        _row(MORE_P, FAILED_PCT, Relation.BELOW, 1, "with two P-CSCFs 180 calls/s are served", SOME[1])
    ),
    *_row(THIRD, P_FIRST, Relation.ABOVE, 0, "at 320 calls per second the P-CSCF overloads again", SIGN[1]),
    *_expected(
        _row(
            THIRD, S_BUSY_PCT, Relation.ABOVE, 90, "the S-CSCFs are then near their knee",
            "a tenth of their time is left at most",
        )
    ),
    *_row(
        NEXT, S_FIRST, Relation.ABOVE, 0, "the S-CSCF is next if the load goes on rising", SIGN[1]
    ),
)  # fmt: skip


NAME = "ims"
SEEDS = 6
STEP_S = 30.0
LADDER_BRIEF_S = 6.0
BRIEF_S = 15.0
CONTROLLED_S = 150.0
REAL_CONTROLLED_S = 60.0
REAL_LATE_S = 75.0
OPTIONS = (
    "topology", "workload", "engine", "seconds", "warmup", "seed", "seeds", "profile", "rate", "delay",
    "queue", "event",
)  # fmt: skip
DEFAULTS: Settings = {
    "workload": tuple(step.workload(scale) for scale in (100, REAL_SCALE) for step in LADDER),
    "transport.subflows": (1,), "engine": (SIMULATOR,),
    "link.rate_mbps": 100.0, "warmup_s": 0.0, "seconds": STEP_S, "seeds": SEEDS, "smoke.seconds": BRIEF_S,
    "smoke.seeds": 1,
    "link.queue_pkts": 1000, "link.delay_us": 50.0,
}  # fmt: skip
REAL: Settings = {
    **DEFAULTS, "workload": tuple(step.workload(REAL_SCALE) for step in LADDER), "engine": (ENGINE,),
    "seeds": None, "smoke.seconds": LADDER_BRIEF_S,
}  # fmt: skip
"""Real programs, one repetition unless --seeds or the profile says otherwise."""
KNEE_LOADS = (*range(40, 181, 20), *range(220, 421, 40))
RISE_AND_FALL = "load=130+180+320+180+130"
PULSE = "load=125+180+125+60+125"
CONTROLLED = (
    *(f"{MATRIX}:320:{RISE_AND_FALL}:policy={policy}" for policy in POLICIES),
    f"{MATRIX}:320:{RISE_AND_FALL}:policy=queue:react_s=10",
    f"{MATRIX}:320:pcscf=3:scscf=3:{RISE_AND_FALL}",
)
AS_REAL = f"scale={REAL_SCALE}:arrivals=constant"
LATE = tuple(
    f"{MATRIX}:180:scscf=2:{PULSE}:{AS_REAL}{more}"
    for more in ("", ":policy=queue", ":policy=queue:react_s=20")
)
"""Both engines run at half the published rates. At the full rates queues are half as long relative to SIP's
timers, and the overload ends sooner."""
REAL_CONTROLLED = tuple(
    f"{MATRIX}:320:load=130+320+60+60:{AS_REAL}{more}"
    for more in ("", *(f":policy={policy}" for policy in POLICIES if policy != "static"))
)
REAL_LATE = LATE[:2]
LARGE = (
    f"{MATRIX}:1000:registrations=300:pcscf=7:scscf=7",
    f"{MATRIX}:3000:registrations=1000:pcscf=21:scscf=20",
    f"{MATRIX}:10000:registrations=3000:pcscf=70:scscf=68",
)


def star(options: SweepOptions) -> list[TopologySpec]:
    """Return one switch with users, HSS and up to six instances of each function, or the networks requested
    instead."""
    return list(options.topologies) or [TopologySpec(TOPOLOGY, {"n": HOSTS})]


def large_star(options: SweepOptions) -> list[TopologySpec]:
    return list(options.topologies) or [TopologySpec(TOPOLOGY, {"n": 142})]


PLAIN = (PLAIN_TCP,)


def _knee_workloads() -> Sequence[str]:
    instances = ("", *(f":pcscf={step.pcscf}:scscf={step.scscf}" for step in (MORE_S, MORE_P)))
    return [f"{MATRIX}:{calls}{more}".replace(":pcscf=1", "") for more in instances for calls in KNEE_LOADS]


def _lasting(defaults: Settings, workloads: tuple[str, ...], seconds: float, brief_s: float) -> Settings:
    return {**defaults, "workload": workloads, "seconds": seconds, "smoke.seconds": brief_s}


def _figure(
    name: str,
    title: str,
    about: str,
    charts: tuple[str, ...],
    defaults: Settings,
    emulated: Settings | None = None,
    marks: tuple[float, ...] = (),
) -> Figure:
    topologies = large_star if name.endswith("large") else star
    return Figure(
        name=name, title=title, about=about, defaults=defaults,
        topologies=topologies, points=points_on(topologies, PLAIN), charts=charts, sized=False,
        relative=False, options=OPTIONS, separate_variants=True, emulated=emulated, marks=marks,
    )  # fmt: skip


FIGURES = (
    Figure(
        name=f"{NAME}-ladder",
        title="The published loads, and what overloads",
        about=(
            "Calls and registrations go through one P-CSCF and one S-CSCF. At 130 calls per second the "
            "S-CSCF is full, because its workers wait for user data. With two of them the P-CSCF is next, at "
            "180, and with two P-CSCFs again at 320. Each step begins with an idle network."
        ),
        defaults={**DEFAULTS, "smoke.seconds": LADDER_BRIEF_S},
        topologies=star,
        points=points_on(star, PLAIN),
        charts=("ladder",),
        published=PUBLISHED,
        emulated=REAL,
        sized=False,
        relative=False,
        options=OPTIONS,
        separate_variants=True,
    ),
    _figure(
        f"{NAME}-knee",
        "Calls completed and setup time by load",
        "The load of each point is constant. Calls are completed as offered up to the knee that service "
        "times give. Beyond it retransmissions take what is left, and far fewer calls complete.",
        ("knee",),
        {**DEFAULTS, "workload": tuple(_knee_workloads()), "seeds": 1},
        marks=PUBLISHED_LOADS,
    ),
    _figure(
        f"{NAME}-control",
        "A controller that scales what is overloaded",
        "The load follows the published steps up and down again. Each policy sees the same signals once a "
        "second. CPU use does not show that an S-CSCF is overloaded, since its workers wait.",
        ("policies", "controlled"),
        _lasting(DEFAULTS, CONTROLLED, CONTROLLED_S, CONTROLLED_S / 3),
        _lasting(REAL, REAL_CONTROLLED, REAL_CONTROLLED_S, REAL_CONTROLLED_S),
    ),
    _figure(
        f"{NAME}-late",
        "An overload that outlasts its cause",
        "125 calls per second are carried before a pulse of 180 and not after it: retransmissions keep the "
        "P-CSCF full. It ends when the load falls to 60, or when an instance is added. Rates are half of "
        "these.",
        ("policies", "controlled"),
        _lasting(DEFAULTS, LATE, CONTROLLED_S, CONTROLLED_S / 2),
        _lasting(REAL, REAL_LATE, REAL_LATE_S, REAL_LATE_S),
    ),
    _figure(
        f"{NAME}-large",
        "Up to 10 000 calls a second",
        "As many instances as the knees ask for, with a tenth to spare. No instance overloads.",
        ("ladder",),
        {**_lasting(DEFAULTS, LARGE, 20.0, 5.0), "seeds": 1},
    ),
)
LADDER_FIGURE, *OTHERS = FIGURES[:4]
EXPERIMENT = Experiment(
    name=NAME,
    title="An IMS under overload, and scaling of its functions (HKU, 2015)",
    folder=NAME,
    # These figures take minutes more with real programs, so only their own experiments run them.
    figures=(LADDER_FIGURE, *(dataclasses.replace(figure, emulated=None) for figure in OTHERS)),
    shared_options=("engine", "seed", "seeds", "profile", "rate", "delay", "queue"),
)
SINGLE = tuple(figure.alone(NAME, OPTIONS) for figure in FIGURES)
