"""Points of several arms (model/arms.py) at several loads: groups for charts, and what these charts share."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.completion import COUNTED_SHARE, Normalised, Range, normalised
from common.grammar import counted
from model.arms import ARMS, ON_LINUX, TWINS, arm_of
from model.result import Status
from model.spec import RunSpec, WorkloadSpec
from plots.data import MIN_REPETITIONS_FOR_INTERVAL, MIN_SEEDS_FOR_INTERVAL, Point
from plots.shared import saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption
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
class Number:
    """A number of several points of one arm: the mean over seeds, half its interval, and whether it is a
    lower bound because many flows have not ended."""

    mean: float
    half: float
    is_bound: bool


def number_of(points: Sequence[Point], value: ValueOf, of: Range | None = None) -> Number | None:
    """Return the number that `value` reads off points of one arm; None if none has it.

    It is a bound if many of the flows in the range `of` have not ended.
    """
    known = _known(value, points)
    if not known:
        return None
    half = interval_pct(known, _least(points)) or 0.0
    return Number(statistics.fmean(known), half, bool(of and _is_bound(points, of)))


def _least(points: Iterable[Point]) -> int:
    """Return how many values an interval needs. Simulated twins get one where real hosts do."""
    beside = {arm_of(point.spec) for point in points} <= {*ON_LINUX, *TWINS}
    return MIN_REPETITIONS_FOR_INTERVAL if beside else MIN_SEEDS_FOR_INTERVAL


@dataclass(frozen=True)
class Study:
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
    chart: str, points: Iterable[Point], out: Path, drawn: Callable[[Study], Figure | None]
) -> list[Path]:
    """Draw one chart per network and distribution of flow sizes; return the files."""
    groups: dict[str, list[tuple[RunSpec, Study]]] = {}
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


def studies(points: Iterable[Point]) -> list[Study]:
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
    made = [Study(common[key], tuple(group)) for key, group in groups.items()]
    return sorted(
        made, key=lambda study: (study.spec.topology.kind, study.sizes != "web search", study.sizes)
    )


def value_of(of: Range, read: Callable[[Normalised], float | None]) -> ValueOf:
    """Return the function that reads a point's flows in a range of sizes."""
    return lambda point: read(normalised(point.flows, point.spec.seconds, of))


def curves(axes: Axes, study: Study, value: ValueOf, of: Range | None = None) -> None:
    """Draw one curve per arm by load: the mean over seeds, with an interval from six seeds on; of real hosts
    and their simulated twins from three on.

    Where many of the flows in the range `of` have not ended, the value is a lower bound, and its mark hollow.
    """
    for name in study.arms:
        found = {load: number_of(study.of(name, load), value, of) for load in study.loads}
        line(axes, {x: number for x, number in found.items() if number}, ARMS[name].colour, ARMS[name].marker)


def line(axes: Axes, at: Mapping[float, Number], colour: str, marker: str) -> None:
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


def reached(study: Study, arm: str, value: ValueOf) -> float | None:
    """Return the mean over seeds at the highest load; None where no point has the value."""
    found = number_of(study.of(arm, study.loads[-1]), value)
    return found.mean if found else None


def _known(value: ValueOf, points: Sequence[Point]) -> list[float]:
    return [found for point in points if (found := value(point)) is not None]


def legend(study: Study) -> list[Line2D]:
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


def network_words(study: Study) -> str:
    """Return `Leaf-spine leaves=9, 144 hosts, web search sizes (1.67 MB on average)`."""
    hosts = max(point.hosts for point in study.points)
    sizes = parse_sizes(str(study.spec.workload.params.get("sizes", USUAL_SIZES)))
    mean = f"{sizes.mean_bytes / 1e6:.3g} MB on average"
    return f"{style.network(study.spec)}, {hosts} hosts, {study.sizes} sizes ({mean})"


def caption(study: Study, *notes: str, means: bool = False) -> Caption:
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
