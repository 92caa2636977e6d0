"""Completion times over the time alone under several arms (model/arms.py), by load, size, part and flow;
losses and queues beside them (Alizadeh et al., pFabric, SIGCOMM 2013, figures 6 to 8).
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from analysis.completion import (
    ALL,
    COUNTED_SHARE,
    LARGE,
    MIDDLE,
    SMALL,
    Normalised,
    Range,
    ended_times,
    normalised,
)
from analysis.quantities import DROPS, INJECTED
from analysis.stats import rank_correlation
from common.text import counted
from harness.results.point_results import PointResult
from model.arms import ARMS, IDEAL, ON_LINUX, PFABRIC_QUEUE_BYTES, PFABRIC_RTO_MS, TWINS, arm_of
from model.spec import RunSpec, WorkloadSpec
from plots.data import MIN_REPETITIONS_FOR_INTERVAL, MIN_SEEDS_FOR_INTERVAL, Inputs, good, of_switch
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Look, Mean
from plots.shared.sheet import Sheet
from workloads.sizes import parse as parse_sizes

APART = (
    "engine", "transport.cc", "link.discipline", "link.queue_bytes", "link.ecn_pkts", "link.nic_queue_pkts",
    "routing", "stack", "traffic", "warmup_s", "seconds", "seed",
)  # fmt: skip
"""Fields in which the points of one chart may differ, apart from the load."""
_SIZES = {
    "websearch": "web search",
    "datamining": "data mining",
    "websearch-steps": "web search (steps)",
    "datamining-steps": "data mining (steps)",
}
USUAL_SIZES = "websearch"
BOUND_PCT = 5.0
"""Share of the flows: if more have not ended, a mean or percentile is shown as a lower bound."""
ValueOf = Callable[[PointResult], float | None]
HOLLOW = f"Hollow: over {BOUND_PCT:g} %, a lower bound."


def number_of(points: Sequence[PointResult], value: ValueOf, of: Range | None = None) -> Mean | None:
    """Return the number that `value` reads off points of one arm; None if none has it.

    It is a lower bound, and hollow, if many of the flows in the range `of` have not ended.
    """
    return kinds.mean_of(map(value, points), hollow=bool(of and _is_bound(points, of)), least=_least(points))


def _least(points: Iterable[PointResult]) -> int:
    """Return how many values an interval needs. Simulated twins get one where real hosts do."""
    beside = {arm_of(point.spec) for point in points} <= {*ON_LINUX, *TWINS}
    return MIN_REPETITIONS_FOR_INTERVAL if beside else MIN_SEEDS_FOR_INTERVAL


def _is_bound(points: Sequence[PointResult], of: Range) -> bool:
    found = [normalised(point.under_test, point.spec.seconds, of) for point in points]
    flows, unfinished = sum(len(one.values) for one in found), sum(one.unfinished for one in found)
    return 100 * unfinished > BOUND_PCT * flows


def value_of(of: Range, read: Callable[[Normalised], float | None]) -> ValueOf:
    """Return the function that reads a point's flows in a range of sizes."""
    return lambda point: read(normalised(point.under_test, point.spec.seconds, of))


MEAN, P99_OF_SMALL, MEAN_OF_LARGE = (
    (ALL, value_of(ALL, lambda one: one.mean)),
    (SMALL, value_of(SMALL, lambda one: one.p99)),
    (LARGE, value_of(LARGE, lambda one: one.mean)),
)
"""Ranges of sizes, and what is read in them."""


@dataclass(frozen=True)
class ArmStudy:
    """The points of one network and one distribution of flow sizes; `spec` has what they have in common."""

    spec: RunSpec
    points: tuple[PointResult, ...]

    @property
    def loads(self) -> list[int]:
        """The loads in percent, ascending."""
        return sorted({load_of(point) for point in self.points})

    @property
    def sizes(self) -> str:
        """Return `web search` or `data mining`, or the name of other sizes."""
        sizes = str(self.spec.workload.params.get("sizes", USUAL_SIZES))
        return _SIZES.get(sizes, sizes)

    @property
    def arms(self) -> list[str]:
        """The arms in the order of their records."""
        found = {arm_of(point.spec) for point in self.points}
        return [name for name in ARMS if name in found]

    def of(self, arm: str, load: int) -> Sequence[PointResult]:
        """Return the points of an arm at a load, one per seed; suspect ones where none is good."""
        return good([p for p in self.points if load_of(p) == load and arm_of(p.spec) == arm])

    def look(self, arm: str) -> Look:
        """Return the look of an arm; dashed if suspect points are all that it has at a load."""
        of = ARMS[arm]
        doubt = any(point.suspect for load in self.loads for point in self.of(arm, load))
        return Look(of.label, of.colour, of.marker).doubted(doubt)

    @property
    def legend(self) -> list[Line2D]:
        return [self.look(name).key(size=4.5) for name in self.arms]

    def reached(self, value: ValueOf, without: str = "") -> dict[str, float]:
        """Return the mean over seeds at the highest load, of each arm that has the value."""
        found = {name: number_of(self.of(name, self.loads[-1]), value) for name in self.arms}
        return {name: mean.value for name, mean in found.items() if mean and name != without}

    def finish(
        self, sheet: Sheet, title: str, about: str, *notes: str, means: bool = False,
        legend: Sequence[Line2D] | None = None,
    ) -> Figure:  # fmt: skip
        """Lay the chart out; the caption says how the points ran, how many flows count, how many of them have
        not ended, and whether `means` have intervals."""
        hosts = max(point.hosts for point in self.points)
        mean_bytes = parse_sizes(str(self.spec.workload.params.get("sizes", USUAL_SIZES))).mean_bytes
        sizes = f"{self.sizes} sizes ({mean_bytes / 1e6:.3g} MB on average)"
        seeds = len({point.seed for point in self.points})
        all_of = [normalised(point.under_test, point.spec.seconds) for point in self.points]
        lengths = [len(one.values) for one in all_of]
        counts = dict.fromkeys((min(lengths), max(lengths)))
        unfinished = max(100 * one.unfinished / max(1, len(one.values)) for one in all_of)
        rate = self.spec.link.rate_mbps
        settings = [
            *style.unlike(self.points),
            counted(seeds, "seed") + (", 95 % intervals" if means and seeds >= _least(self.points) else ""),
            f"{rate / 1000:g} Gb/s" if rate >= 1000 else f"{rate:g} Mb/s",
            f"{' to '.join(map(str, counts))} flows count per point",
        ]
        all_notes = [
            *style.doubts(self.points),
            f"At most {unfinished:.1f} % had not ended and count with their time so far.",
            *notes,
            f"Arrivals of the first {100 * COUNTED_SHARE:g} % of the window count.",
        ]
        subtitle = f"{style.network(self.spec)}, {hosts} hosts, {sizes}: {about}"
        return sheet.finish(title, subtitle, settings, all_notes, self.legend if legend is None else legend)


def _per_study(
    drawn: Callable[[ArmStudy, Inputs], Figure | None],
    where: Callable[[PointResult], bool] = lambda _: True,
) -> saving.Drawing:
    """Draw one chart per network and distribution of flow sizes; names tell apart studies of the same."""

    def draw(inputs: Inputs) -> list[Path]:
        groups: dict[str, list[tuple[RunSpec, ArmStudy]]] = {}
        for study in studies(filter(where, inputs.points)):
            groups.setdefault(_named(study.spec), []).append((study.spec, study))
        each = (saving.draw_groups(inputs, of, drawn, _named) for of in groups.values())
        return [path for paths in each for path in paths]

    return draw


def _named(spec: RunSpec) -> str:
    """Return the part of a file name that tells studies apart."""
    return f"{spec.topology.kind}-{spec.workload.params.get('sizes', USUAL_SIZES)}"


def load_of(point: PointResult) -> int:
    """Return the load that a point offers, in percent."""
    return int(point.spec.workload.params.get("load", 0))


def studies(points: Iterable[PointResult]) -> list[ArmStudy]:
    """Group the points that ran by network and flow sizes."""
    groups: dict[str, list[PointResult]] = {}
    common: dict[str, RunSpec] = {}
    for point in points:
        if point.is_baseline or point.failed or not point.under_test:
            continue
        spec = point.spec.neutral(*APART)
        sizes = {k: v for k, v in spec.workload.params.items() if k != "load"}
        spec = dataclasses.replace(spec, workload=WorkloadSpec(spec.workload.matrix, sizes))
        common[spec.canonical()] = spec
        groups.setdefault(spec.canonical(), []).append(point)
    made = [ArmStudy(common[key], tuple(group)) for key, group in groups.items()]
    return sorted(
        made, key=lambda study: (study.spec.topology.kind, study.sizes != "web search", study.sizes)
    )


def _by_load(axes: Axes, study: ArmStudy, value: ValueOf, of: Range | None = None) -> None:
    """Draw one curve per arm by load."""
    for name in study.arms:
        at = {load: number_of(study.of(name, load), value, of) for load in study.loads}
        kinds.curve(axes, at, study.look(name))


def _times_axis(axes: Axes) -> None:
    """Make the vertical axis one of normalised times: logarithmic, from 1 on."""
    style.plain_log(axes.yaxis)
    low, high = axes.get_ylim()
    axes.set_ylim(min(0.95, low), max(2.05, high))
    subs = (1.0, 2.0, 5.0) if high > 5 else (1.0, 1.2, 1.5, 2.0, 3.0)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))


def _listed(values: Mapping[str, float], shown: str) -> str:
    return ", ".join(f"{ARMS[name].label} {shown.format(value)}" for name, value in values.items())


def by_load_finding(study: ArmStudy) -> str:
    """Return the title: what each arm reaches at the highest load, its simulated twin in parentheses."""
    known = study.reached(MEAN[1])
    both = {real: twin for real, twin in zip(ON_LINUX, TWINS, strict=True) if {real, twin} <= known.keys()}
    alone = [f"{ARMS[name].label} {known[name]:.2f}" for name in known if name not in {*both, *both.values()}]
    beside = [f"{ARMS[real].sender} {known[real]:.2f} ({known[twin]:.2f})" for real, twin in both.items()]
    which = ", Linux (simulated)" if both else ""
    return f"Completion time over time alone at {study.loads[-1]} % load{which}: {', '.join(alone + beside)}"


@_per_study
def normalised_by_load(study: ArmStudy, _: Inputs) -> Figure:
    sheet = Sheet((2.4, 1))
    axes = sheet.axes[0][0]
    _by_load(axes, study, MEAN[1], ALL)
    _times_axis(axes)
    axes.set_ylabel(axis_labels.COMPLETION_OVER_ALONE)
    axes.set_xlabel(axis_labels.LOAD)
    axes.set_xticks(study.loads)
    return study.finish(sheet, by_load_finding(study), "mean of all flows", HOLLOW, means=True)


@_per_study
def normalised_by_size(study: ArmStudy, inputs: Inputs) -> Figure:
    sheet = Sheet((1.7, 2), (1.7, 2))
    sizes = {
        "(0, 100 kB]: mean": (SMALL, value_of(SMALL, lambda one: one.mean)),
        "(0, 100 kB]: 99th percentile": P99_OF_SMALL,
        "(100 kB, 10 MB]: mean": (MIDDLE, value_of(MIDDLE, lambda one: one.mean)),
        "above 10 MB: mean": MEAN_OF_LARGE,
    }
    for axes, (words, (of, value)) in zip(kinds.every(sheet.axes), sizes.items(), strict=True):
        _by_load(axes, study, value, of)
        _times_axis(axes)
        axes.set_title(words, fontsize=8.5)
        axes.set_xticks(study.loads[:: 2 if len(study.loads) > 4 else 1])
    for row in sheet.axes:
        row[0].set_ylabel(axis_labels.OVER_ALONE)
    for axes in sheet.axes[1]:
        axes.set_xlabel(axis_labels.LOAD)
    tails = _listed(study.reached(P99_OF_SMALL[1], without=IDEAL), "{:.3g}")
    title = f"p99 of small flows at {study.loads[-1]} % load, over their time alone: {tails}"
    notes = f"{HOLLOW} p99 from a hundred flows on."
    return study.finish(sheet, title if tails else inputs.title, "by size of flow", notes, means=True)


def values(study: ArmStudy, arm: str, of: Range) -> list[float]:
    """Return the sorted normalised times of all seeds at the highest load."""
    points = study.of(arm, study.loads[-1])
    return sorted(v for point in points for v in normalised(point.under_test, point.spec.seconds, of).values)


@_per_study
def normalised_cdf(study: ArmStudy, _: Inputs) -> Figure:
    sheet = Sheet((1.8, 1), (1.8, 1))
    for (axes,), of in zip(sheet.axes, (ALL, SMALL), strict=True):
        for name in study.arms:
            if found := values(study, name, of):
                kinds.cdf(axes, found, study.look(name))
        style.plain_log(axes.xaxis)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        kinds.share_axis(axes, "flows (%)")
        axes.set_title(of.label, fontsize=8.5)
    sheet.axes[-1][0].set_xlabel(axis_labels.COMPLETION_OVER_ALONE)
    all_of = {name: values(study, name, ALL) for name in study.arms}
    alone = {name: 100 * sum(v <= 1.1 for v in found) / max(1, len(found)) for name, found in all_of.items()}
    load = study.loads[-1]
    title = f"Flows within 1.1 times their time alone at {load} % load: {_listed(alone, '{:.0f} %')}"
    return study.finish(sheet, title, f"load {load} %")


def dropped_pct(point: PointResult) -> float | None:
    """Return the packets dropped in percent of those that hosts sent, acknowledgements included."""
    sent = point.metric(INJECTED.name)
    return 100 * (point.metric(DROPS.name) or 0.0) / sent if sent else None


def retransmitted_pct(point: PointResult) -> float | None:
    """Return the segments retransmitted in percent of full segments delivered."""
    segments = sum(flow.bytes_received for flow in point.under_test) / point.spec.stack.payload_bytes
    return 100 * sum(flow.retransmits for flow in point.under_test) / segments if segments else None


def _losses(study: ArmStudy, _: Inputs) -> Figure:
    sheet = Sheet((1.8, 1), (1.8, 1))
    shown = (("packets dropped (%)", dropped_pct), ("retransmitted (%)", retransmitted_pct))
    for (axes,), (words, value) in zip(sheet.axes, shown, strict=True):
        _by_load(axes, study, value)
        axes.set_ylim(bottom=0)
        axes.set_xticks(study.loads)
        axes.set_ylabel(words)
    sheet.axes[1][0].set_xlabel(axis_labels.LOAD)
    dropped = _listed(study.reached(dropped_pct), "{:.2g} %")
    title = f"Packets dropped at {study.loads[-1]} % load: {dropped}"
    return study.finish(sheet, title, "drops and retransmissions")


normalised_losses = _per_study(_losses, where=lambda point: point.spec.engine != IDEAL)


@_per_study
def normalised_parts(study: ArmStudy, inputs: Inputs) -> Figure:
    sheet = Sheet((0.15 + 0.2 * len(study.arms), 3))
    shown = {"all: mean": MEAN, "up to 100 kB: p99": P99_OF_SMALL, "> 10 MB: mean": MEAN_OF_LARGE}
    for axes, (words, (of, value)) in zip(sheet.axes[0], shown.items(), strict=True):
        kinds.rows(axes, [ARMS[name].label for name in study.arms], named=axes is sheet.axes[0][0], size=7)
        for row, name in enumerate(study.arms):
            points = study.of(name, study.loads[-1])
            if found := number_of(points, value, of):
                _part(axes, row, found, study.look(name), any(point.suspect for point in points))
        _parts_axis(axes)
        axes.set_title(words, fontsize=7)
    sheet.axes[0][1].set_xlabel(axis_labels.COMPLETION_OVER_ALONE)
    known = study.reached(MEAN[1])
    worst = max(known, key=known.__getitem__, default="")
    title = inputs.title
    if worst:
        title = f"pFabric {ARMS[worst].label}: {known[worst]:.3g} times the time alone, the largest change"
    return study.finish(sheet, title, f"load {study.loads[-1]} %", HOLLOW, means=True, legend=[])


def _part(axes: Axes, row: int, found: Mean, look: Look, doubt: bool) -> None:
    axes.plot([1, found.value], [row, row], color=look.colour, lw=1.2, alpha=0.5)
    kinds.mark(axes, dataclasses.replace(found, hollow=found.hollow or doubt), row, look, 5)
    kinds.write(axes, f"{found.value:.3g}{'?' if doubt else ''}", found.value + found.half, row, 7)


def _parts_axis(axes: Axes) -> None:
    style.plain_log(axes.xaxis)
    low, high = axes.get_xlim()
    axes.set_xlim(0.95, max(2.5, high * (high / max(low, 0.9)) ** 0.45))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 10 else (1.0, 2.0, 5.0)))


_CURVES = (
    (Look("all flows, mean", "#0072B2", "o"), MEAN),
    (Look("(0, 100 kB], 99th percentile", "#D55E00", "s"), P99_OF_SMALL),
    (Look("above 10 MB, mean", "#009E73", "^"), MEAN_OF_LARGE),
)


@_per_study
def normalised_sensitivity(study: ArmStudy, _: Inputs) -> Figure | None:
    """Draw the size of a port's buffer in units of 1024 bytes, and the fixed timeout in us."""
    shown = (
        ("buffer of a port (kB of 1024 bytes)", lambda p: p.spec.link.queue_bytes / 1024,
         [p for p in study.points if p.spec.stack.min_rto_ms == PFABRIC_RTO_MS]),
        ("timeout (us)", lambda p: 1000 * p.spec.stack.min_rto_ms,
         [p for p in study.points if p.spec.link.queue_bytes == PFABRIC_QUEUE_BYTES]),
    )  # fmt: skip
    of_values = [kinds.grouped(points, where) for _, where, points in shown]
    means = [
        value
        for by_place in of_values
        for points in by_place.values()
        for point in good(points)
        if (value := MEAN[1](point)) is not None
    ]
    if not all(of_values) or not means:
        return None
    sheet = Sheet((1.7, 1), (1.7, 1))
    for (axes,), (words, _where, _points), by_place in zip(sheet.axes, shown, of_values, strict=True):
        _by_value(axes, by_place)
        axes.set_xlabel(words)
    title = f"Mean over all flows: {min(means):.2f} to {max(means):.2f} times the time alone"
    return study.finish(
        sheet, title, f"load {study.loads[-1]} %, minTCP + pFabric", HOLLOW, means=True,
        legend=[look.key(size=4.5) for look, _ in _CURVES],
    )  # fmt: skip


def _by_value(axes: Axes, by_place: Mapping[float, Sequence[PointResult]]) -> None:
    places = sorted(by_place)
    chosen = {x: good(by_place[x]) for x in places}
    doubt = any(point.suspect for points in chosen.values() for point in points)
    for look, (of, read) in _CURVES:
        kinds.curve(axes, {x: number_of(chosen[x], read, of) for x in places}, look.doubted(doubt))
    style.plain_log(axes.xaxis)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.xaxis.set_minor_locator(NullLocator())
    _times_axis(axes)
    axes.set_ylabel(axis_labels.OVER_ALONE)


@dataclass(frozen=True)
class Pairs:
    """Times over times alone of the flows that ended in both, in one order."""

    arm: str
    linux: tuple[float, ...]
    simulated: tuple[float, ...]
    suspect: bool = False

    @property
    def ratio(self) -> float:
        """The median of the Linux hosts' time over the simulated one."""
        return statistics.median(a / b for a, b in zip(self.linux, self.simulated, strict=True))

    @property
    def agreement(self) -> float | None:
        """Spearman's rank correlation; None for fewer than three flows."""
        return rank_correlation(self.linux, self.simulated) if len(self.linux) > 2 else None


def pairs(study: ArmStudy, load: int) -> list[Pairs]:
    """Return the flows of all seeds at a load, for each arm that both kinds of hosts ran."""
    found = []
    for linux, simulated in zip(ON_LINUX, TWINS, strict=True):
        real, twin = (
            {point.seed: ended_times(point.under_test, point.spec.seconds) for point in study.of(arm, load)}
            for arm in (linux, simulated)
        )
        both = [
            (real[seed][flow], twin[seed][flow])
            for seed in sorted(real.keys() & twin.keys())
            for flow in sorted(real[seed].keys() & twin[seed].keys())
        ]
        if both:
            doubt = any(point.suspect for arm in (linux, simulated) for point in study.of(arm, load))
            found.append(Pairs(linux, tuple(a for a, _ in both), tuple(b for _, b in both), doubt))
    return found


@_per_study
def normalised_by_flow(study: ArmStudy, _: Inputs) -> Figure | None:
    load, found = next(
        ((load, found) for load in reversed(study.loads) if (found := pairs(study, load))), (0, [])
    )
    if not found:
        return None
    sheet = Sheet((1.9, len(found)))
    for axes, of in zip(sheet.axes[0], found, strict=True):
        _scatter(axes, of)
    sheet.axes[0][0].set_ylabel(f"simulated: {axis_labels.OVER_ALONE}")
    sheet.axes[0][len(found) // 2].set_xlabel(f"Linux: {axis_labels.OVER_ALONE}")
    ratios = ", ".join(f"{ARMS[of.arm].sender} {of.ratio:.2f}" for of in found)
    title = f"Median of each flow's time between Linux hosts over the simulated one: {ratios}"
    notes = "Flows that ended in both are drawn."
    return study.finish(sheet, title, f"load {load} %, flow by flow", notes, legend=[])


def _scatter(axes: Axes, of: Pairs) -> None:
    limit = 1.2 * max((*of.linux, *of.simulated))
    step = -(-len(of.linux) // style.MOST_POINTS)
    axes.plot(
        of.linux[::step], of.simulated[::step], linestyle="none", marker=".", ms=3, alpha=0.6,
        color=ARMS[of.arm].colour,
    )  # fmt: skip
    if of.suspect:
        style.hatch(axes)
    style.log_axes(axes)
    kinds.equals(axes, 0.9, limit)
    for axis, subs in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 3.0))):  # a column is narrower than high
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if limit <= 10 else subs, numticks=20))
    axes.set_title(ARMS[of.arm].sender, fontsize=7)
    agreement = "" if of.agreement is None else f"\nrank corr. {of.agreement:.2f}"
    words = f"{len(of.linux)} flows{agreement}"
    axes.text(0.05, 0.95, words, transform=axes.transAxes, fontsize=6.5, va="top")


_MIN_PCT = 0.01


def beyond_pct(points: Sequence[PointResult]) -> npt.NDArray[np.float64]:
    """Return, for each length in packets from 0 on, the percentage of samples of switch ports beyond it."""
    counts = np.zeros(1)
    samples = 0
    for point in points:
        times, queues = point.read_table("queue_times"), point.read_table("queues")
        if times is None or queues is None:
            continue
        ports = [port.port for port in point.ports if of_switch(port)]
        lengths = np.asarray(queues["pkts"])[np.isin(queues["port"], ports)].astype(np.int64)
        found = np.bincount(lengths, minlength=len(counts)).astype(float)
        found[: len(counts)] += counts
        counts = found
        samples += len(times["t_s"]) * len(ports)
    tail = counts[::-1].cumsum()[::-1]
    beyond: npt.NDArray[np.float64] = 100 * np.append(tail[1:], 0.0) / max(1, samples)
    return beyond


def _queues(study: ArmStudy, _: Inputs) -> Figure | None:
    load = study.loads[-1]
    beyond = {name: beyond_pct(study.of(name, load)) for name in study.arms}
    shown = {name: of for name, of in beyond.items() if of.any()}
    if not shown:
        return None
    sheet = Sheet((2.2, 1))
    axes = sheet.axes[0][0]
    for name, of in shown.items():
        look, often = study.look(name), of >= _MIN_PCT
        axes.step(np.flatnonzero(often) + 1, of[often], where="post", color=look.colour, ls=look.dash, lw=1.5)
    style.plain_log(axes.yaxis)
    axes.set_ylabel("samples of ports (%)\nwith this many packets or more")
    axes.set_xlabel(axis_labels.QUEUE)
    longest = _listed({name: int((of > 1).sum()) for name, of in shown.items()}, "{}")
    title = f"Packets that 1 % of the queues exceed at {load} % load: {longest}"
    keys = [study.look(name).key(size=4.5) for name in shown]
    return study.finish(sheet, title, "queues of switches", "ACKs count as packets.", legend=keys)


queue_by_arm = _per_study(_queues, where=lambda point: point.read_table("queue_times") is not None)
