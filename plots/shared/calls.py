"""What the charts of an IMS share: its settings and groups of points, colours of its functions, captions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis.quantities import Quantity
from engines.registry import LINUX_HOSTS
from model.result import Status
from model.spec import RunSpec
from plots.data import Point
from plots.shared import style
from plots.shared.sheet import Caption
from workloads.sip import CONSTANT, MATRIX, POISSON, SipSettings, settings

P_COLOUR, S_COLOUR = "#0072B2", "#D55E00"
CALLS_COLOUR, OFFERED_COLOUR = "#009E73", "#777777"
_ARRIVALS = {POISSON: "Poisson", CONSTANT: "constant"}


@dataclass(frozen=True)
class Group:
    """Points that a chart shows together; `share` is the factor of their rates."""

    points: tuple[Point, ...]

    @property
    def share(self) -> float:
        return ims_of(self.points[0]).share

    @property
    def seeds(self) -> int:
        return len({point.seed for point in self.points})


def ims_of(point: Point) -> SipSettings:
    return settings(point.spec.workload.params)


def is_real(point: Point) -> bool:
    return point.spec.engine in LINUX_HOSTS


def grouped(points: Iterable[Point], key: Callable[[Point], object]) -> list[Group]:
    """Group usable points about calls by `key`, in the order of first occurrence."""
    groups: dict[object, list[Point]] = {}
    for point in points:
        if point.spec.workload.matrix == MATRIX and not point.failed:
            groups.setdefault(key(point), []).append(point)
    return [Group(tuple(each)) for each in groups.values()]


def named(spec: RunSpec) -> str:
    """Return the first part of a chart's file name: load, instances, scale, and policy."""
    found = settings(spec.workload.params)
    parts = [
        f"{found.scale}pct",
        spec.engine,
        "" if found.load == CONSTANT else found.load.replace("+", "_"),
        "" if found.policy == "static" else f"{found.policy}{found.react_s}",
        f"p{found.pcscf}s{found.scscf}",
    ]
    return "-".join(filter(None, parts))


def of_scale(point: Point) -> object:
    """Return what points of one chart have in common: scale, arrivals, times, network, and seconds."""
    found = ims_of(point)
    times = found.message_us, found.scscf_us, found.lookup_us, found.workers
    return found.scale, found.arrivals, times, point.spec.topology.k, point.spec.seconds


def good(points: Sequence[Point]) -> list[Point]:
    """Return the points without doubt; where there are none, all of them."""
    return [point for point in points if point.status is Status.OK] or list(points)


def values(points: Sequence[Point], quantity: Quantity) -> list[float]:
    """Return a recorded quantity of each point that has it."""
    return [value for point in points if (value := point.recorded(quantity)) is not None]


def caption(group: Group, *notes: str) -> Caption:
    """Return the settings and what the means are over."""
    found, first = ims_of(group.points[0]), group.points[0]
    engines = dict.fromkeys("real" if is_real(point) else "simulated" for point in group.points)
    return Caption(
        [
            *style.unlike(group.points),
            " and ".join(engines),
            f"{found.message_us / found.share:g} us per message at a P-CSCF",
            f"look-up {found.lookup_us / found.share / 1000:g} ms, {found.workers} workers",
            f"{first.spec.seconds:g} s, {_ARRIVALS[found.arrivals]} arrivals",
        ],
        [*style.doubts(group.points), *notes, _seeds(group)],
    )


def _seeds(group: Group) -> str:
    """Return how many seeds the means are over, by engine if they differ."""
    counts: dict[str, set[int]] = {}
    for point in group.points:
        counts.setdefault("real" if is_real(point) else "simulated", set()).add(point.seed)
    if len({len(seeds) for seeds in counts.values()}) > 1:
        return f"Seeds: {', '.join(f'{len(seeds)} {engine}' for engine, seeds in counts.items())}."
    return "One seed." if group.seeds == 1 else f"Means over {group.seeds} seeds."


def log_ms(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def load_words(group: Group) -> str:
    """Return the load over time, in published units."""
    load = ims_of(group.points[0]).load.replace("+", ", ")
    return f"load {load} calls/s" + ("" if group.share == 1 else f" x {group.share:g}")


def scale_words(group: Group) -> str:
    """Return `; rates are 50 % of the published ones`, or nothing at the published rates."""
    return "" if group.share == 1 else f"; rates are {100 * group.share:g} % of the published ones"
