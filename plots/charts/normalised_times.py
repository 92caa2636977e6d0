"""Completion times over the time alone under several arms (model/arms.py), by load, size, part and flow;
losses and queues beside them (Alizadeh et al., pFabric, SIGCOMM 2013, figures 6 to 8).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

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
from model.arms import ARMS, IDEAL, ON_LINUX, PFABRIC_QUEUE_BYTES, PFABRIC_RTO_MS, TWINS, Arm, arm_of
from model.result import Status
from model.spec import RunSpec, WorkloadSpec
from plots.data import (
    MIN_REPETITIONS_FOR_INTERVAL,
    MIN_SEEDS_FOR_INTERVAL,
    Inputs,
    Point,
    interval_pct,
    of_switch,
)
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text
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
ValueOf = Callable[[Point], float | None]
HOLLOW = f"Hollow: over {BOUND_PCT:g} %, a lower bound."


@dataclass(frozen=True)
class ArmMean:
    """A number of several points of one arm: the mean over seeds, half its interval, and whether it is a
    lower bound because many flows have not ended."""

    mean: float
    half: float
    is_bound: bool


def number_of(points: Sequence[Point], value: ValueOf, of: Range | None = None) -> ArmMean | None:
    """Return the number that `value` reads off points of one arm; None if none has it.

    It is a bound if many of the flows in the range `of` have not ended.
    """
    known = _known(value, points)
    if not known:
        return None
    half = interval_pct(known, _least(points)) or 0.0
    return ArmMean(statistics.fmean(known), half, bool(of and _is_bound(points, of)))


def _least(points: Iterable[Point]) -> int:
    """Return how many values an interval needs. Simulated twins get one where real hosts do."""
    beside = {arm_of(point.spec) for point in points} <= {*ON_LINUX, *TWINS}
    return MIN_REPETITIONS_FOR_INTERVAL if beside else MIN_SEEDS_FOR_INTERVAL


@dataclass(frozen=True)
class ArmStudy:
    """The points of one network and one distribution of flow sizes; `spec` has what they have in common."""

    spec: RunSpec
    points: tuple[Point, ...]

    @property
    def loads(self) -> list[int]:
        """The loads in percent, ascending."""
        return sorted({load_of(point) for point in self.points})

    @property
    def sizes(self) -> str:
        """Return `web search` or `data mining`, or the name of other sizes."""
        return sizes_words(str(self.spec.workload.params.get("sizes", USUAL_SIZES)))

    @property
    def arms(self) -> list[str]:
        """The arms in the order of their records."""
        found = {arm_of(point.spec) for point in self.points}
        return [name for name in ARMS if name in found]

    def of(self, arm: str, load: int) -> list[Point]:
        """Return the points of an arm at a load, one per seed."""
        return [p for p in self.points if load_of(p) == load and arm_of(p.spec) == arm]


def draw_each(
    chart: str, points: Iterable[Point], out: Path, drawn: Callable[[ArmStudy], Figure | None]
) -> list[Path]:
    """Draw one chart per network and distribution of flow sizes; return the files."""
    groups: dict[str, list[tuple[RunSpec, ArmStudy]]] = {}
    for study in studies(points):
        groups.setdefault(_named(study.spec), []).append((study.spec, study))
    return [path for of in groups.values() for path in saving.draw_each(chart, of, out, drawn, _named)]


def _named(spec: RunSpec) -> str:
    """Return the part of a file name that tells studies apart."""
    return f"{spec.topology.kind}-{spec.workload.params.get('sizes', USUAL_SIZES)}"


def load_of(point: Point) -> int:
    """Return the load that a point offers, in percent."""
    return int(point.spec.workload.params.get("load", 0))


def sizes_words(sizes: str) -> str:
    """Return a distribution's name for readers."""
    return _SIZES.get(sizes, sizes)


def studies(points: Iterable[Point]) -> list[ArmStudy]:
    """Group the points that ran by network and flow sizes."""
    groups: dict[str, list[Point]] = {}
    common: dict[str, RunSpec] = {}
    for point in points:
        if point.is_baseline or point.status is Status.FAILED or not point.flows:
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


def value_of(of: Range, read: Callable[[Normalised], float | None]) -> ValueOf:
    """Return the function that reads a point's flows in a range of sizes."""
    return lambda point: read(normalised(point.flows, point.spec.seconds, of))


def curves(axes: Axes, study: ArmStudy, value: ValueOf, of: Range | None = None) -> None:
    """Draw one curve per arm by load: the mean over seeds, with an interval from six seeds on; of real hosts
    and their simulated twins from three on.

    Where many of the flows in the range `of` have not ended, the value is a lower bound, and its mark hollow.
    """
    for name in study.arms:
        found = {load: number_of(study.of(name, load), value, of) for load in study.loads}
        line(axes, {x: number for x, number in found.items() if number}, ARMS[name].colour, ARMS[name].marker)


def line(axes: Axes, at: Mapping[float, ArmMean], colour: str, marker: str) -> None:
    """Draw numbers by their place: means with intervals; marks of lower bounds are hollow."""
    axes.errorbar(
        list(at), [number.mean for number in at.values()], yerr=[number.half for number in at.values()],
        color=colour, marker=marker, ms=4.5, lw=1.5, capsize=2.5,
    )  # fmt: skip
    hollow = {place: number for place, number in at.items() if number.is_bound}
    axes.plot(
        list(hollow), [number.mean for number in hollow.values()], linestyle="none",
        marker=marker, ms=4.5, color=colour, markerfacecolor="white", zorder=4,
    )  # fmt: skip


def _is_bound(points: Sequence[Point], of: Range) -> bool:
    found = [normalised(point.flows, point.spec.seconds, of) for point in points]
    flows, unfinished = sum(len(one.values) for one in found), sum(one.unfinished for one in found)
    return 100 * unfinished > BOUND_PCT * flows


def reached(study: ArmStudy, arm: str, value: ValueOf) -> float | None:
    """Return the mean over seeds at the highest load; None where no point has the value."""
    found = number_of(study.of(arm, study.loads[-1]), value)
    return found.mean if found else None


def _known(value: ValueOf, points: Sequence[Point]) -> list[float]:
    return [found for point in points if (found := value(point)) is not None]


def legend(study: ArmStudy) -> list[Line2D]:
    """Return one handle per arm."""
    return [
        Line2D(
            [], [], color=ARMS[name].colour, marker=ARMS[name].marker, ms=4.5, lw=1.5, label=ARMS[name].label
        )
        for name in study.arms
    ]


def times_axis(axes: Axes) -> None:
    """Make the vertical axis one of normalised times: logarithmic, from 1 on."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(min(0.95, low), max(2.05, high))
    subs = (1.0, 2.0, 5.0) if high > 5 else (1.0, 1.2, 1.5, 2.0, 3.0)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def network_words(study: ArmStudy) -> str:
    """Return `Leaf-spine leaves=9, 144 hosts, web search sizes (1.67 MB on average)`."""
    hosts = max(point.hosts for point in study.points)
    sizes = parse_sizes(str(study.spec.workload.params.get("sizes", USUAL_SIZES)))
    mean = f"{sizes.mean_bytes / 1e6:.3g} MB on average"
    return f"{style.network(study.spec)}, {hosts} hosts, {study.sizes} sizes ({mean})"


def caption(study: ArmStudy, *notes: str, means: bool = False) -> Caption:
    """Return how the points ran, how many flows count, and how many of them have not ended; whether `means`
    have intervals."""
    seeds = len({point.seed for point in study.points})
    all_of = [normalised(point.flows, point.spec.seconds) for point in study.points]
    least, most = min(len(one.values) for one in all_of), max(len(one.values) for one in all_of)
    unfinished = max(100 * one.unfinished / max(1, len(one.values)) for one in all_of)
    flows = f"{least}" if least == most else f"{least} to {most}"
    rate = study.spec.link.rate_mbps
    with_intervals = means and seeds >= _least(study.points)
    return Caption(
        [
            *style.unlike(study.points),
            counted(seeds, "seed") + (", 95 % intervals" if with_intervals else ""),
            f"{rate / 1000:g} Gb/s" if rate >= 1000 else f"{rate:g} Mb/s",
            f"{flows} flows count per point",
        ],
        [
            f"At most {unfinished:.1f} % had not ended and count with their time so far.",
            *notes,
            f"Arrivals of the first {100 * COUNTED_SHARE:g} % of the window count.",
        ],
    )


_BY_LOAD_HEIGHT_IN = 2.4


def draw_normalised_by_load(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return draw_each("normalised_by_load", inputs.points, inputs.out, _by_load_chart)


def by_load_finding(study: ArmStudy) -> str:
    """Return the title: what each arm reaches at the highest load, its simulated twin in parentheses."""
    load, read = study.loads[-1], value_of(ALL, lambda one: one.mean)
    means = {name: reached(study, name, read) for name in study.arms}
    known = {name: mean for name, mean in means.items() if mean is not None}
    both = {real: twin for real, twin in zip(ON_LINUX, TWINS, strict=True) if {real, twin} <= known.keys()}
    alone = [f"{ARMS[name].label} {known[name]:.2f}" for name in known if name not in {*both, *both.values()}]
    beside = [f"{ARMS[real].sender} {known[real]:.2f} ({known[twin]:.2f})" for real, twin in both.items()]
    kinds = ", Linux (simulated)" if both else ""
    return f"Completion time over time alone at {load} % load{kinds}: {', '.join(alone + beside)}"


def _by_load_chart(study: ArmStudy) -> Figure:
    sheet = Sheet((_BY_LOAD_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    curves(axes, study, value_of(ALL, lambda one: one.mean), ALL)
    times_axis(axes)
    axes.set_ylabel(axis_labels.COMPLETION_OVER_ALONE)
    axes.set_xlabel(axis_labels.LOAD)
    axes.set_xticks(study.loads)
    words = Text(
        by_load_finding(study),
        f"{network_words(study)}: mean of all flows",
        caption(study, HOLLOW, means=True),
    )
    return sheet.finish(words, legend(study))


_BY_SIZE_HEIGHT_IN = 1.7
_BY_SIZE_PANELS = (
    ("(0, 100 kB]: mean", SMALL, value_of(SMALL, lambda one: one.mean)),
    ("(0, 100 kB]: 99th percentile", SMALL, value_of(SMALL, lambda one: one.p99)),
    ("(100 kB, 10 MB]: mean", MIDDLE, value_of(MIDDLE, lambda one: one.mean)),
    ("above 10 MB: mean", LARGE, value_of(LARGE, lambda one: one.mean)),
)


def draw_normalised_by_size(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return draw_each("normalised_by_size", inputs.points, inputs.out, _by_size_chart)


def by_size_finding(study: ArmStudy) -> str:
    """Return the title: the tail of small flows at the highest load."""
    load, read = study.loads[-1], _BY_SIZE_PANELS[1][2]
    parts = [
        f"{ARMS[name].label} {mean:.3g}"
        for name in study.arms
        if name != IDEAL and (mean := reached(study, name, read)) is not None
    ]
    if not parts:
        return f"Completion times by flow size, up to {load} % load"
    return f"p99 of small flows at {load} % load, over their time alone: {', '.join(parts)}"


def _by_size_chart(study: ArmStudy) -> Figure:
    sheet = Sheet((_BY_SIZE_HEIGHT_IN, 2), (_BY_SIZE_HEIGHT_IN, 2))
    flat = [axes for row in sheet.axes for axes in row]
    for axes, (title, of, value) in zip(flat, _BY_SIZE_PANELS, strict=True):
        curves(axes, study, value, of)
        times_axis(axes)
        axes.set_title(title, fontsize=8.5, loc="left")
        axes.set_xticks(study.loads[:: 2 if len(study.loads) > 4 else 1])
    for row in sheet.axes:
        row[0].set_ylabel(axis_labels.OVER_ALONE)
    for axes in sheet.axes[1]:
        axes.set_xlabel(axis_labels.LOAD)
    notes = f"{HOLLOW} p99 from a hundred flows on."
    words = Text(
        by_size_finding(study),
        f"{network_words(study)}: by size of flow",
        caption(study, notes, means=True),
    )
    return sheet.finish(words, legend(study))


_CDF_HEIGHT_IN = 1.8
_CDF_PANELS = (ALL, SMALL)


def draw_normalised_cdf(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return draw_each("normalised_cdf", inputs.points, inputs.out, _cdf_chart)


def values(study: ArmStudy, arm: str, of: Range) -> list[float]:
    """Return the sorted normalised times of all seeds at the highest load."""
    points = study.of(arm, study.loads[-1])
    return sorted(v for point in points for v in normalised(point.flows, point.spec.seconds, of).values)


def _cdf_chart(study: ArmStudy) -> Figure:
    sheet = Sheet(*[(_CDF_HEIGHT_IN, 1)] * len(_CDF_PANELS))
    for (axes,), of in zip(sheet.axes, _CDF_PANELS, strict=True):
        for name in study.arms:
            _curve(axes, values(study, name, of), ARMS[name].colour)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(0, 102)
        axes.set_yticks(range(0, 101, 25))
        axes.set_ylabel("flows (%)")
        axes.set_title(of.label, fontsize=8.5, loc="left")
    sheet.axes[-1][0].set_xlabel(axis_labels.COMPLETION_OVER_ALONE)
    load = study.loads[-1]
    alone = ", ".join(f"{ARMS[name].label} {_at_once_pct(study, name):.0f} %" for name in study.arms)
    title = f"Flows within 1.1 times their time alone at {load} % load: {alone}"
    words = Text(title, f"{network_words(study)}: load {load} %", caption(study))
    return sheet.finish(words, legend(study))


def _at_once_pct(study: ArmStudy, arm: str) -> float:
    all_of = values(study, arm, ALL)
    return 100 * sum(value <= 1.1 for value in all_of) / max(1, len(all_of))


def _curve(axes: Axes, of: Sequence[float], colour: str) -> None:
    if not of:
        return
    share = 100 * np.arange(1, len(of) + 1) / len(of)
    shown = np.unique(np.linspace(0, len(of) - 1, style.MOST_POINTS).round().astype(int))
    axes.plot(np.array(of)[shown], share[shown], color=colour, lw=1.5)


_LOSSES_HEIGHT_IN = 1.8


def draw_normalised_losses(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    with_packets = [point for point in inputs.points if point.spec.engine != IDEAL]
    return draw_each("normalised_losses", with_packets, inputs.out, _losses_chart)


def dropped_pct(point: Point) -> float | None:
    """Return the packets dropped in percent of those that hosts sent, acknowledgements included."""
    sent = point.recorded(INJECTED)
    return 100 * (point.recorded(DROPS) or 0.0) / sent if sent else None


def retransmitted_pct(point: Point) -> float | None:
    """Return the segments retransmitted in percent of full segments delivered."""
    segments = sum(flow.bytes_received for flow in point.flows) / point.spec.stack.payload_bytes
    return 100 * sum(flow.retransmits for flow in point.flows) / segments if segments else None


def _losses_chart(study: ArmStudy) -> Figure:
    sheet = Sheet((_LOSSES_HEIGHT_IN, 1), (_LOSSES_HEIGHT_IN, 1))
    for (axes,), value in zip(sheet.axes, (dropped_pct, retransmitted_pct), strict=True):
        curves(axes, study, value)
        axes.set_ylim(bottom=0)
        axes.set_xticks(study.loads)
    sheet.axes[0][0].set_ylabel("packets dropped (%)")
    sheet.axes[1][0].set_ylabel("retransmitted (%)")
    sheet.axes[1][0].set_xlabel(axis_labels.LOAD)
    load = study.loads[-1]
    parts = [
        f"{ARMS[name].label} {mean:.2g} %"
        for name in study.arms
        if (mean := reached(study, name, dropped_pct)) is not None
    ]
    words = Text(
        f"Packets dropped at {load} % load: {', '.join(parts)}",
        f"{network_words(study)}: drops and retransmissions",
        caption(study),
    )
    return sheet.finish(words, legend(study))


_ROW_IN = 0.2
_PARTS_PANELS = (
    ("all: mean", ALL, value_of(ALL, lambda one: one.mean)),
    ("up to 100 kB: p99", SMALL, value_of(SMALL, lambda one: one.p99)),
    ("> 10 MB: mean", LARGE, value_of(LARGE, lambda one: one.mean)),
)


def draw_normalised_parts(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return draw_each("normalised_parts", inputs.points, inputs.out, _parts_chart)


def _parts_chart(study: ArmStudy) -> Figure:
    height = 0.15 + _ROW_IN * len(study.arms)
    sheet = Sheet((height, 3))
    for axes, (title, of, value) in zip(sheet.axes[0], _PARTS_PANELS, strict=True):
        _rows(axes, study, of, value)
        axes.set_title(title, fontsize=7, loc="left")
    sheet.axes[0][0].set_yticks(range(len(study.arms)), [ARMS[name].label for name in study.arms], fontsize=7)
    sheet.axes[0][1].set_xlabel(axis_labels.COMPLETION_OVER_ALONE)
    words = Text(
        _finding(study),
        f"{network_words(study)}: load {study.loads[-1]} %",
        caption(study, HOLLOW, means=True),
    )
    return sheet.finish(words)


def _rows(axes: Axes, study: ArmStudy, of: Range, value: ValueOf) -> None:
    for row, name in enumerate(study.arms):
        found = number_of(study.of(name, study.loads[-1]), value, of)
        if found is not None:
            _mark(axes, row, found, ARMS[name])
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(0.95, max(2.5, high * (high / max(low, 0.9)) ** 0.45))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 10 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(study.arms) - 0.5, -0.5)
    axes.set_yticks(range(len(study.arms)), [""] * len(study.arms))


def _mark(axes: Axes, row: int, found: ArmMean, arm: Arm) -> None:
    axes.plot([1, found.mean], [row, row], color=arm.colour, lw=1.2, alpha=0.5)
    axes.errorbar(
        [found.mean], [row], xerr=[found.half], color=arm.colour, marker=arm.marker, ms=5, capsize=2.5,
        markerfacecolor="white" if found.is_bound else arm.colour,
    )  # fmt: skip
    at = found.mean + found.half, row
    axes.annotate(f"{found.mean:.3g}", at, xytext=(5, -3), textcoords="offset points", fontsize=7)


def _finding(study: ArmStudy) -> str:
    """Return the title: which change costs most, over all flows."""
    means = {name: reached(study, name, _PARTS_PANELS[0][2]) for name in study.arms}
    known = {name: value for name, value in means.items() if value is not None}
    if not known:
        return "What each part of pFabric contributes"
    worst = max(known, key=known.__getitem__)
    return f"pFabric {ARMS[worst].label}: {known[worst]:.3g} times the time alone, the largest change"


_SENSITIVITY_HEIGHT_IN = 1.7
_CURVES = (
    ("all flows, mean", "#0072B2", "o", ALL, value_of(ALL, lambda one: one.mean)),
    ("(0, 100 kB], 99th percentile", "#D55E00", "s", SMALL, value_of(SMALL, lambda one: one.p99)),
    ("above 10 MB, mean", "#009E73", "^", LARGE, value_of(LARGE, lambda one: one.mean)),
)


def draw_normalised_sensitivity(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return draw_each("normalised_sensitivity", inputs.points, inputs.out, _sensitivity_chart)


def buffer_kb(point: Point) -> float:
    """Return the buffer of a port in units of 1024 bytes."""
    return point.spec.link.queue_bytes / 1024


def rto_us(point: Point) -> float:
    """Return the fixed timeout in us."""
    return 1000 * point.spec.stack.min_rto_ms


def _sensitivity_chart(study: ArmStudy) -> Figure | None:
    buffers = [p for p in study.points if p.spec.stack.min_rto_ms == PFABRIC_RTO_MS]
    timeouts = [p for p in study.points if p.spec.link.queue_bytes == PFABRIC_QUEUE_BYTES]
    read = _CURVES[0][4]
    means = [value for point in study.points if (value := read(point)) is not None]
    if not buffers or not timeouts or not means:
        return None
    sheet = Sheet((_SENSITIVITY_HEIGHT_IN, 1), (_SENSITIVITY_HEIGHT_IN, 1))
    _curves(sheet.axes[0][0], buffers, buffer_kb)
    _curves(sheet.axes[1][0], timeouts, rto_us)
    sheet.axes[0][0].set_xlabel("buffer of a port (kB of 1024 bytes)")
    sheet.axes[1][0].set_xlabel("timeout (us)")
    words = Text(
        f"Mean over all flows: {min(means):.2f} to {max(means):.2f} times the time alone",
        f"{network_words(study)}: load {study.loads[-1]} %, minTCP + pFabric",
        caption(study, HOLLOW, means=True),
    )
    handles = [Line2D([], [], color=c, marker=m, ms=4.5, lw=1.5, label=label) for label, c, m, *_ in _CURVES]
    return sheet.finish(words, handles)


def _curves(axes: Axes, points: Sequence[Point], where: Callable[[Point], float]) -> None:
    places = sorted({where(point) for point in points})
    for _, colour, marker, of, read in _CURVES:
        found = {x: number_of([p for p in points if where(p) == x], read, of) for x in places}
        line(axes, {x: number for x, number in found.items() if number}, colour, marker)
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    times_axis(axes)
    axes.set_ylabel(axis_labels.OVER_ALONE)


_BY_FLOW_HEIGHT_IN = 1.9
_MOST_TICKS = 20


@dataclass(frozen=True)
class Pairs:
    """Times over times alone of the flows that ended in both, in one order."""

    arm: str
    linux: tuple[float, ...]
    simulated: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median of the Linux hosts' time over the simulated one."""
        return statistics.median(a / b for a, b in zip(self.linux, self.simulated, strict=True))

    @property
    def agreement(self) -> float | None:
        """Spearman's rank correlation; None for fewer than three flows."""
        return rank_correlation(self.linux, self.simulated) if len(self.linux) > 2 else None


def draw_normalised_by_flow(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return draw_each("normalised_by_flow", inputs.points, inputs.out, _by_flow_chart)


def pairs(study: ArmStudy, load: int) -> list[Pairs]:
    """Return the flows of all seeds at a load, for each arm that both kinds of hosts ran."""
    found = []
    for linux, simulated in zip(ON_LINUX, TWINS, strict=True):
        real = {point.seed: _times(point) for point in study.of(linux, load)}
        twin = {point.seed: _times(point) for point in study.of(simulated, load)}
        both = [
            (real[seed][flow], twin[seed][flow])
            for seed in sorted(real.keys() & twin.keys())
            for flow in sorted(real[seed].keys() & twin[seed].keys())
        ]
        if both:
            found.append(Pairs(linux, tuple(a for a, _ in both), tuple(b for _, b in both)))
    return found


def _times(point: Point) -> dict[int, float]:
    return ended_times(point.flows, point.spec.seconds)


def _by_flow_chart(study: ArmStudy) -> Figure | None:
    with_pairs = [load for load in study.loads if pairs(study, load)]
    if not with_pairs:
        return None
    load = with_pairs[-1]
    found = pairs(study, load)
    sheet = Sheet((_BY_FLOW_HEIGHT_IN, len(found)))
    for axes, of in zip(sheet.axes[0], found, strict=True):
        _scatter(axes, of)
    sheet.axes[0][0].set_ylabel(f"simulated: {axis_labels.OVER_ALONE}")
    sheet.axes[0][len(found) // 2].set_xlabel(f"Linux: {axis_labels.OVER_ALONE}")
    ratios = [f"{ARMS[of.arm].sender} {of.ratio:.2f}" for of in found]
    words = Text(
        f"Median of each flow's time between Linux hosts over the simulated one: {', '.join(ratios)}",
        f"{network_words(study)}: load {load} %, flow by flow",
        caption(study, "Flows that ended in both are drawn."),
    )
    return sheet.finish(words)


def _scatter(axes: Axes, of: Pairs) -> None:
    limit = 1.2 * max((*of.linux, *of.simulated))
    chosen = _some(len(of.linux))
    axes.plot([1, limit], [1, limit], color="#999999", lw=1, ls="--")
    axes.plot(
        [of.linux[i] for i in chosen], [of.simulated[i] for i in chosen], linestyle="none",
        marker=".", ms=3, alpha=0.6, color=ARMS[of.arm].colour,
    )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=_subs(axis.axis_name, limit), numticks=_MOST_TICKS))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set(xlim=(0.9, limit), ylim=(0.9, limit))
    axes.set_title(ARMS[of.arm].sender, fontsize=7, loc="left")
    agreement = of.agreement
    words = f"{len(of.linux)} flows" + ("" if agreement is None else f"\nrank corr. {agreement:.2f}")
    axes.text(0.05, 0.95, words, transform=axes.transAxes, fontsize=6.5, va="top")


def _subs(axis: str, limit: float) -> Sequence[float]:
    """Return the multiples of powers of ten that an axis labels; a column is narrower than high."""
    if limit <= 10:
        return (1.0, 2.0, 5.0)
    return (1.0,) if axis == "x" else (1.0, 3.0)


def _some(count: int) -> Sequence[int]:
    """Return the places of the flows that are drawn: all, or as many as a chart may hold."""
    step = max(1, math.ceil(count / style.MOST_POINTS))
    return range(0, count, step)


_QUEUE_HEIGHT_IN = 2.2
_MIN_PCT = 0.01


def draw_queue_by_arm(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes whose queues were sampled; see
    `registry.Chart.draw`."""
    sampled = [point for point in inputs.points if point.read_table("queue_times") is not None]
    return draw_each("queue_by_arm", sampled, inputs.out, _queue_chart)


def beyond_pct(points: Sequence[Point]) -> npt.NDArray[np.float64]:
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


def _queue_chart(study: ArmStudy) -> Figure | None:
    sheet = Sheet((_QUEUE_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    load, parts = study.loads[-1], []
    for name in study.arms:
        beyond = beyond_pct(study.of(name, load))
        if not beyond.any():
            continue
        shown = beyond >= _MIN_PCT
        axes.step(np.flatnonzero(shown) + 1, beyond[shown], where="post", color=ARMS[name].colour, lw=1.5)
        parts.append(f"{ARMS[name].label} {int((beyond > 1).sum())}")
    if not parts:
        return None
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda percent, _: f"{percent:g}"))
    axes.set_ylabel("samples of ports (%)\nwith this many packets or more")
    axes.set_xlabel(axis_labels.QUEUE)
    words = Text(
        f"Packets that 1 % of the queues exceed at {load} % load: {', '.join(parts)}",
        f"{network_words(study)}: queues of switches",
        caption(study, "ACKs count as packets."),
    )
    handles = [line for line in legend(study) if any(str(line.get_label()) in one for one in parts)]
    return sheet.finish(words, handles)
