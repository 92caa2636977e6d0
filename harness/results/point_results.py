"""Results of points, stored and beside their baselines, which their percentages refer to.

A baseline can be computed: within half a percent of the computed value it is right, whatever the machine
did. A point is suspect if its baseline is suspect and off that value. A point without a usable baseline
keeps its goodput in Mb/s and has no percentages.

Points that were emulated and simulated are paired here, too (`pairs`).
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import topos
from analysis import stats
from analysis.completion import Completions, completions
from analysis.plausibility import MOST_PCT
from analysis.stats import correlation, rank_correlation
from common.errors import StoreError
from common.text import three_digits
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS, VIRTUAL_TIME
from engines.workload import kind_of
from harness.baseline import baseline_of, is_as_expected, is_baseline, off_by_arithmetic
from harness.results import tables
from harness.results.run_json import ANOTHER_REVISION, Attempt, sample_path
from harness.results.tables import REMOVE, Content, UnreadableError
from model import transports
from model.reasons import BASELINE, COMPLETION, IMPOSSIBLE, RTT, Reason, blames_machine
from model.result import SAMPLE_COLUMNS, FlowRow, PortRow, Status, Table, array, under_test
from model.spec import RunSpec, StackSpec
from workloads import matrices

BASELINE_SUSPECT = Reason(BASELINE, "its baseline is suspect")


@dataclass(frozen=True)
class PointResult:
    """The result of one point, as it is stored: run.json, with origin.json where there is one, and the tables
    beside it, which are read when they are asked for.

    `hosts` counts the topology's hosts, `elapsed_s` is the wall time, `attempts` are all runs of the point in
    order. `judge` puts points beside their baselines: `baseline_mbps` is the goodput of the baseline flow,
    None where there is none, and status, reasons and cautions take the baseline into account.
    """

    path: Path
    """The folder of the point."""
    spec: RunSpec
    status: Status
    reasons: tuple[Reason, ...]
    hosts: int
    elapsed_s: float
    metrics: Mapping[str, float]
    provenance: Mapping[str, Any]
    attempts: tuple[Attempt, ...]
    cautions: tuple[Reason, ...] = ()
    """Reasons to doubt some of its metrics; they leave its status unchanged."""
    cost: frozenset[str] = frozenset()
    """The names of metrics of the machine that computed a reproducible result."""
    flows: Sequence[FlowRow] = ()
    ports: Sequence[PortRow] = ()
    samples: Mapping[str, Content] = field(default_factory=dict)
    """The sample tables beside it, by name."""
    lost: tuple[str, ...] = ()
    """Samples that are in run.json but have no file any more; everything else can be used."""
    digest: str = ""
    """The SHA-256 of its run.json, which has those of all its tables; readings do not count."""
    readings: dict[str, float | None] = field(default_factory=dict, compare=False)
    """What was read off its rows and samples for published statements (measures.kept)."""
    stored_readings: int = field(default=0, compare=False)
    """How many of them run.json has."""
    unreadable: set[str] = field(default_factory=set, compare=False)
    """Its damaged sample tables that were asked for: what was read without them is not kept."""
    settings: dict[Callable[[RunSpec], RunSpec], str] = field(default_factory=dict, compare=False)
    """Texts of what it shares with other points, by the function that says what that is (claims.py)."""
    baseline_mbps: float | None = None
    as_intended: bool = False
    """Suspect only because the CPU was overloaded, in a figure that overloads it on purpose."""
    overrides: tuple[str, ...] = ()
    """The settings that it has instead of its figure's, in words; known where it is drawn."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def state(self) -> str:
        """The status in words; `suspect, as intended` if the figure overloads the machine on purpose."""
        return f"{self.status}, as intended" if self.as_intended else str(self.status)

    @property
    def suspect(self) -> bool:
        return self.status is Status.SUSPECT

    @property
    def failed(self) -> bool:
        return self.status is Status.FAILED

    @property
    def subflows(self) -> int:
        return self.spec.transport.subflows

    @property
    def cc(self) -> str:
        return self.spec.transport.cc

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def rate_mbps(self) -> float:
        """The rate of the links."""
        return self.spec.link.rate_mbps

    @property
    def algorithm(self) -> str:
        """The algorithm's name in model/transports.py."""
        return transports.algorithm(self.cc, self.subflows, self.spec.routing)

    @property
    def matrix(self) -> str:
        """The traffic matrix with its parameters, as on command lines: `stride:4`."""
        return matrices.label(self.spec.workload.matrix, self.spec.workload.params)

    @property
    def is_baseline(self) -> bool:
        return is_baseline(self.spec)

    @property
    def finished(self) -> bool:
        """Whether a run may skip it. Points that failed or lost a file are repeated."""
        return self.status is not Status.FAILED and not self.lost

    @property
    def rate_choice(self) -> str:
        """How the link rate of real hosts was chosen."""
        return str(self.provenance.get("rate_choice", ""))

    @functools.cached_property
    def baseline_hash(self) -> str:
        """The hash of the baseline that its percentages refer to."""
        return baseline_of(self.spec).content_hash()

    def metric(self, name: str) -> float | None:
        return self.metrics.get(name)

    @property
    def point(self) -> PointResult:
        """Itself: users' files ask for `point.point.flows`."""
        return self

    @property
    def jain(self) -> float | None:
        """Jain's fairness index of the flows' goodputs."""
        return self.metric("jain")

    @property
    def retransmits(self) -> float | None:
        """The segments that all flows retransmitted; None without flows or segments."""
        return self.metric("retransmits")

    @property
    def drops(self) -> float | None:
        """The packets that all ports dropped; None where the engine has no packets."""
        return self.metric("drops")

    @property
    def goodput_mbps(self) -> stats.Spread | None:
        """The spread of the goodputs of the flows under test; None without flows."""
        mean, *others = (self.metric(f"goodput_mbps_{name}") for name in ("mean", "min", "median", "max"))
        least, median, most = others
        if mean is None or least is None or median is None or most is None:
            return None
        return stats.Spread(mean, least, median, most)

    @property
    def goodput_pct(self) -> stats.Spread | None:
        """The same in percent of the baseline; None without one."""
        goodput = self.goodput_mbps
        return goodput.scaled(100.0 / self.baseline_mbps) if goodput and self.baseline_mbps else None

    @property
    def mean_pct(self) -> float | None:
        """The mean of `goodput_pct`; None also where all flows are transfers, of which goodput says
        nothing."""
        return self.goodput_pct.mean if self.goodput_pct and not self.only_transfers else None

    @functools.cached_property
    def under_test(self) -> Sequence[FlowRow]:
        """The flows whose transport it studies (`model.result.under_test`)."""
        return under_test(self.flows)

    @functools.cached_property
    def flows_pct(self) -> tuple[float, ...]:
        """The goodput of each flow under test in percent of the baseline; empty where `mean_pct` is None."""
        if self.mean_pct is None or not self.baseline_mbps:
            return ()
        return tuple((100 * array(self.under_test, "goodput_mbps") / self.baseline_mbps).tolist())

    @property
    def completions(self) -> Completions:
        """Its completed flows, read anew by each call."""
        return completions(self.flows)

    @property
    def all_sized(self) -> bool:
        """Whether all its flows have a size, and some started in the measured window."""
        return bool(self.flows) and self.metric("flows_sized") == len(self.flows)

    @property
    def only_transfers(self) -> bool:
        """Whether all its flows have a size and begin at times of their own, so that completion times are its
        results, not goodput."""
        return self.all_sized and not matrices.loops(self.spec.workload.matrix)

    @functools.cached_property
    def is_arithmetic(self) -> bool:
        """Whether its goodput is the computed one of an uncongested flow, as a baseline's should be."""
        return self.goodput_mbps is not None and is_as_expected(self.spec, self.goodput_mbps.mean)

    @property
    def only_machine_suspects(self) -> bool:
        """Whether only the machine makes it suspect, so that another attempt may be ok."""
        return self.status is Status.SUSPECT and blames_machine(self.reasons)

    @functools.cached_property
    def machine_attempts(self) -> int:
        """The number of its runs if only the machine makes it suspect; 0 if another attempt would not help.

        Another attempt helps a baseline between real hosts that is suspect for any reason, or that is off its
        computed goodput."""
        of_use = self.only_machine_suspects
        if is_baseline(self.spec):
            if of_use:
                of_use = not self.is_arithmetic
            elif self.status is Status.SUSPECT:
                of_use = self.spec.engine not in VIRTUAL_TIME
            elif self.status is Status.OK:
                goodput = self.goodput_mbps.mean if self.goodput_mbps else None
                of_use = bool(off_by_arithmetic(self.spec, goodput))
        return len(self.attempts) if of_use else 0

    def sample(self, name: str) -> Table:
        """Return the sample table called `name`. Raises StoreError if there is none or it is damaged."""
        if name not in self.samples:
            have = ", ".join(sorted(self.samples)) or "none"
            raise StoreError(f"reading {self.path}: no samples called {name}; it has: {have}")
        path = sample_path(self.path, name)
        table = tables.read_table(path, self.samples[name])
        for column in {**SAMPLE_COLUMNS, **kind_of(self.spec).tables}.get(name, ()):
            if column not in table.columns:
                raise UnreadableError(path, f"it has no column {column}; {ANOTHER_REVISION}", REMOVE)
        return table

    def read_table(self, name: str) -> Table | None:
        """Return the sample table called `name`; None where it was not sampled, or with a message where it is
        damaged. Every call reads anew: the samples of a sweep do not fit into memory."""
        if name not in self.samples:
            return None
        try:
            return self.sample(name)
        except StoreError as error:
            self.unreadable.add(name)
            _say_once(str(error))
            return None


@functools.cache
def _say_once(text: str) -> None:
    """Print each message once: several charts and statements read one file."""
    print(f"refabric: {text}", file=sys.stderr)


def judge(points: Iterable[PointResult], cpu_bound: Collection[str] = ()) -> list[PointResult]:
    """Return every point beside its baseline, sorted by `order`.

    `cpu_bound` names the points that overload the machine on purpose.
    """
    known = {point.spec.content_hash(): point for point in points}
    baselines = {name: point for name, point in known.items() if is_baseline(point.spec)}
    return [
        _judged(point, baselines, point.name in cpu_bound)
        for point in sorted(known.values(), key=lambda p: order(p.spec))
    ]


def order(spec: RunSpec) -> tuple[object, ...]:
    """Return the sort key of points in tables: network, baseline first, transport, seed."""
    return (
        spec.engine, spec.dataplane, spec.topology.kind, spec.topology.k,
        topos.shape(spec.topology.kind, spec.topology.params), spec.link.rate_mbps,
        spec.link.queue_pkts, not is_baseline(spec), spec.workload.matrix,
        sorted(spec.workload.params.items()), transports.rank(spec.transport.cc), spec.transport.cc,
        spec.transport.subflows > 1, spec.routing, spec.transport.subflows, spec.seed, spec.content_hash(),
    )  # fmt: skip


def _judged(point: PointResult, baselines: Mapping[str, PointResult], cpu_bound: bool) -> PointResult:
    baseline = baselines.get(point.baseline_hash) if baselines else None
    baseline_mbps = _goodput_mbps(baseline)
    status, reasons, cautions = point.status, point.reasons, point.cautions
    if _is_right_baseline(point):
        doubts = (RTT, COMPLETION)
        doubted = tuple(dataclasses.replace(reason, doubts=doubts) for reason in reasons)
        status, reasons, cautions = Status.OK, (), (*cautions, *doubted)
    elif status is not Status.FAILED and _is_suspect(baseline) and baseline is not point:
        status = Status.SUSPECT
        reasons = (*reasons, BASELINE_SUSPECT)
    if point.status is not Status.FAILED and (short := _short_baseline(point, baseline_mbps)):
        status, reasons = Status.SUSPECT, (*reasons, short)
    return dataclasses.replace(
        point,
        status=status,
        reasons=reasons,
        baseline_mbps=baseline_mbps,
        as_intended=status is Status.SUSPECT and cpu_bound and blames_machine(reasons),
        cautions=cautions,
    )


def _is_right_baseline(point: PointResult) -> bool:
    """Return whether a baseline is suspect only because of the machine and still has the computed goodput."""
    suspect = point.status is Status.SUSPECT and blames_machine(point.reasons)
    return suspect and is_baseline(point.spec) and point.is_arithmetic


def _short_baseline(point: PointResult, baseline_mbps: float | None) -> Reason | None:
    """Return the reason for suspicion if flows have more than 100 % can be, because one flow alone did not
    fill its links; None if they have not."""
    if not baseline_mbps or point.goodput_mbps is None or point.only_transfers:
        return None
    pct = 100 * point.goodput_mbps.mean / baseline_mbps
    network = point.spec.topology
    if pct <= MOST_PCT or pct <= MOST_PCT * topos.build(network.kind, network.params).host_speed:
        return None
    text = (
        f"mean goodput is {pct:.0f} % of the baseline: one flow alone reached "
        f"{three_digits(baseline_mbps)} Mb/s, less than its links carry; "
        "let it fill them (--queue, --warmup, --cc)"
    )
    return Reason(IMPOSSIBLE, text, numbers=(("baseline_pct", pct),))


def _is_suspect(baseline: PointResult | None) -> bool:
    if baseline is None or baseline.status is not Status.SUSPECT:
        return False
    return not baseline.is_arithmetic


def _goodput_mbps(baseline: PointResult | None) -> float | None:
    """Return the goodput of the baseline flow in Mb/s; None if there is none to divide by."""
    if baseline is None or baseline.status is Status.FAILED or baseline.goodput_mbps is None:
        return None
    return baseline.goodput_mbps.mean or None


STARTS_TOGETHER = "native"
"""The traffic whose flows all start at once, as simulated flows do."""


def alike(spec: RunSpec) -> RunSpec:
    """Return the same for specs that differ only in the engine, and in fields that only one engine uses."""
    traffic = STARTS_TOGETHER if spec.engine in SIMULATED_HOSTS else spec.traffic
    return dataclasses.replace(spec, engine="any", stack=StackSpec(), traffic=traffic)


@dataclass(frozen=True)
class EnginePair:
    """The same point, emulated and simulated."""

    emulated: PointResult
    simulated: PointResult

    @property
    def goodputs(self) -> tuple[list[float], list[float]]:
        """The goodput of each flow in Mb/s, emulated and simulated, in the same order."""
        return _goodputs(self.emulated), _goodputs(self.simulated)

    @property
    def correlation(self) -> float | None:
        """Pearson's correlation of the flows' goodputs."""
        return correlation(*self.goodputs)

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rank correlation of the flows' goodputs."""
        return rank_correlation(*self.goodputs)

    @property
    def mean_difference(self) -> float | None:
        """Simulated minus emulated mean goodput, each in % of its own baseline."""
        here, there = self.simulated.goodput_pct, self.emulated.goodput_pct
        return here.mean - there.mean if here and there else None


def _goodputs(judged: PointResult) -> list[float]:
    return [flow.goodput_mbps for flow in sorted(under_test(judged.flows), key=lambda flow: flow.flow)]


def pairs(points: Iterable[PointResult]) -> list[EnginePair]:
    """Pair the points that were emulated and simulated; points without flows and baselines are left out.

    Where there are points in real time, those in virtual time are compared with them too.
    """
    points = [judged for judged in points if judged.flows and not is_baseline(judged.spec)]
    ran = engines(points)
    standard = next((name for name in LINUX_HOSTS if name in ran), "")
    emulated: dict[str, PointResult] = {}
    others: list[PointResult] = []
    for judged in points:
        if judged.spec.engine == standard:
            emulated[alike(judged.spec).canonical()] = judged
        else:
            others.append(judged)
    keyed = ((alike(other.spec).canonical(), other) for other in others)
    return [EnginePair(emulated[key], other) for key, other in keyed if key in emulated]


def engines(points: Iterable[PointResult]) -> Sequence[str]:
    """Return the engines that ran any of the points."""
    return sorted({judged.spec.engine for judged in points})
