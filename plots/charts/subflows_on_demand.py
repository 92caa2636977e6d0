"""Schemes that add subflows on demand beside others: throughput or completion of jobs against subflows per
flow, and the effect of one option or one assumption changed at a time.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.completion import mean_job_s
from analysis.quantities import CONTROLLER_MESSAGES, GOODPUT_MBPS_MEAN
from harness.results.point_results import PointResult
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.schedulers import is_responsive, option_words, scheduled, scheduler_title
from model.spec import RunSpec
from model.transports import USUAL_ROUTING, transport
from plots.data import Inputs, Panel, good
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Look, Mean
from plots.shared.sheet import Sheet
from workloads import matrices

APART = ("scheduler", "transport.cc", "routing", "link.ecn_pkts")
"""Fields in which the schemes of one chart differ."""
RESPONSIVE, CENTRAL, HASHED = "subflows added on demand", "central scheduler", "without a controller"
TRADE_OFF_LOOKS = {
    look.label: look
    for look in (
        Look(RESPONSIVE, "#D55E00", "o", ""),
        Look(CENTRAL, "#009E73", "*", ""),
        Look(HASHED, "#0072B2", "^", ""),
    )
}
USUAL_MOST = 4
_HEIGHT_IN = 3.1
_MAX_LABELS = 12
_SIZE_PT = 290.0, 72 * _HEIGHT_IN
"""The axes' size, for the places of names."""
ValueOf = Callable[[PointResult], float | None]


def ran(point: PointResult) -> bool:
    return bool(point.under_test) and not point.failed


@dataclass(frozen=True)
class SchemeMark:
    """A scheme: its name and kind, and subflows per flow and value of each seed."""

    name: str
    kind: str
    subflows: tuple[float, ...]
    values: tuple[float, ...]
    suspect: bool

    @property
    def x(self) -> Mean:
        return kinds.mean_of(self.subflows, hollow=self.suspect) or Mean(0.0)

    @property
    def y(self) -> Mean:
        return kinds.mean_of(self.values, hollow=self.suspect) or Mean(0.0)


def job_s(point: PointResult) -> float | None:
    """Return the mean completion time of jobs in s; None where flows have no size or a job is incomplete."""
    known = matrices.MATRICES[point.spec.workload.matrix].defaults | dict(point.spec.workload.params)
    each = int(known.get("maps", 1)) * int(known.get("reduces", 1))
    return mean_job_s(point.under_test, each)


def marks(panel: Panel) -> list[SchemeMark]:
    """Return a mark for each scheme with a value; suspect points count where no seed is good."""
    sized = _has_sizes(panel)
    found = []
    for called, of in by_scheme(panel.points, name).items():
        pairs = [(subflows(point), job_s(point) if sized else goodput_mbps(point)) for point in of]
        known = [(count, value) for count, value in pairs if value is not None]
        if known:
            counts, values = zip(*known, strict=True)
            found.append(SchemeMark(called, kind_of(of[0]), counts, values, all(p.suspect for p in of)))
    return sorted(found, key=lambda mark: statistics.fmean(mark.subflows))


def by_scheme(
    points: Iterable[PointResult], named: Callable[[PointResult], str]
) -> dict[str, Sequence[PointResult]]:
    """Return the good points of each scheme, by its name; the suspect ones where none is good."""
    return {called: good(of) for called, of in kinds.grouped(points, named).items()}


def name(point: PointResult) -> str:
    """Return a scheme's name: transport and controller, and the most subflows of a connection."""
    chosen = point.spec.scheduler
    if is_responsive(chosen):
        return f"{chosen.interval_ms:g} ms, gap {chosen.demand_gap:g}" + _unusual(point)
    usual = point.cc in {BASELINE, COUPLED_DEFAULT} and point.spec.routing == USUAL_ROUTING
    if usual and scheduled(point.spec) and point.subflows == 1:
        return scheduler_title(chosen)
    called = style.transport(point.subflows)
    if not usual:
        called = transport(point.cc, point.subflows, point.spec.routing)
    return ", ".join(filter(None, (called, scheduler_title(chosen))))


def _unusual(point: PointResult) -> str:
    """Return what else is set: `, checks=6`, `, M=8`."""
    words = [word for word in option_words(point.spec.scheduler).split(":") if not word.startswith("gap=")]
    most = [f"M={point.subflows}"] if point.subflows != USUAL_MOST else []
    return "".join(f", {word}" for word in (*words, *most) if word)


def subflows(point: PointResult) -> float:
    """Return the mean number of subflows per flow; the point must have flows."""
    return statistics.fmean(flow.subflows_joined for flow in point.under_test)


def goodput_mbps(point: PointResult) -> float:
    """Return the mean goodput per flow; the point must have flows."""
    return statistics.fmean(flow.goodput_mbps for flow in point.under_test)


def _has_sizes(panel: Panel) -> bool:
    return any(flow.size_bytes for point in panel.points for flow in point.under_test)


def kind_of(point: PointResult) -> str:
    """Return what chooses the paths of its subflows: one of TRADE_OFF_LOOKS."""
    if is_responsive(point.spec.scheduler):
        return RESPONSIVE
    return CENTRAL if scheduled(point.spec) else HASHED


def trade_off_finding(of: Sequence[SchemeMark], sized: bool) -> str:
    """Return the title: the best scheme that adds subflows on demand, and the best of the others."""
    best, shown = (min, "{:.2f} s") if sized else (max, "{:.0f} Mb/s")
    ours, others = ([mark for mark in of if (mark.kind == RESPONSIVE) is on] for on in (True, False))
    if not ours:
        return ""
    own = best(ours, key=lambda mark: mark.y.value)
    on_demand = f"On demand: {shown.format(own.y.value)} with {own.x.value:.1f} subflows per flow"
    if not others:
        return on_demand
    first = best(others, key=lambda mark: mark.y.value)
    return f"{on_demand}; best of the others: {shown.format(first.y.value)} ({first.name})"


@saving.per_panel(APART, ran)
def trade_off(panel: Panel, inputs: Inputs) -> Figure | None:
    of, sized = marks(panel), _has_sizes(panel)
    if not of:
        return None
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    for mark in of:
        kinds.mark(axes, mark.x, mark.y, TRADE_OFF_LOOKS[mark.kind])
    axes.set_xlabel(f"{axis_labels.SUBFLOWS_PER_FLOW}, mean")
    axes.set_ylabel("completion of a job (s)" if sized else GOODPUT_MBPS_MEAN.axis)
    axes.margins(x=0.12, y=0.15)
    if len(of) <= _MAX_LABELS:
        _label(axes, of)
    subtitle = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    notes = [*style.doubts(panel.points), style.intervals(len(panel.seeds))]
    keys = [TRADE_OFF_LOOKS[kind].key(size=6) for kind in dict.fromkeys(mark.kind for mark in of)]
    title = trade_off_finding(of, sized) or inputs.title
    return sheet.finish(title, subtitle, settings_of(panel), notes, keys)


def settings_of(panel: Panel, *ignored: str, queues: bool = True) -> list[str]:
    """Return the settings of a caption whatever the schemes and the fields `ignored`."""
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART, *ignored))
    return style.parameters(bare, congestion="", queues=queues)


def _label(axes: Axes, of: Sequence[SchemeMark]) -> None:
    """Write names beside the marks, where there is room."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x_scale, y_scale = _SIZE_PT[0] / (high - low), _SIZE_PT[1] / (top - bottom)
    spots = [
        NamedMark(
            mark.name, (mark.x.value - low) * x_scale, (mark.y.value - bottom) * y_scale,
            mark.x.half * x_scale, mark.y.half * y_scale,
        )
        for mark in of
    ]  # fmt: skip
    for spot, box in zip(spots, places(spots, _SIZE_PT), strict=True):
        x, side = (box.left, "left") if box.left > spot.x else (box.right, "right")
        axes.annotate(
            spot.name, (low + spot.x / x_scale, bottom + spot.y / y_scale),
            xytext=(x - spot.x, box.bottom + HEIGHT / 2 - spot.y), textcoords="offset points", ha=side,
            va="center", fontsize=7.5, color=style.INK,
        )  # fmt: skip


@dataclass(frozen=True)
class SchemeOption:
    """An option as rows show it: what it is called, its unit, where a spec has it, and whether it is on or
    off, so that its row shows no value."""

    words: str
    unit: str
    of: Callable[[RunSpec], float]
    is_switch: bool = False


CONTROLLER_OPTIONS = (
    SchemeOption("monitor interval", "ms", lambda spec: spec.scheduler.interval_ms),
    SchemeOption("demand gap", "", lambda spec: spec.scheduler.demand_gap),
    SchemeOption("rate variation", "", lambda spec: spec.scheduler.rate_variation),
    SchemeOption("steady checks", "", lambda spec: spec.scheduler.checks),
    SchemeOption("demand change", "", lambda spec: spec.scheduler.demand_change),
    SchemeOption("message delay", "ms", lambda spec: spec.scheduler.message_ms),
    SchemeOption("message loss", "", lambda spec: spec.scheduler.message_loss),
    SchemeOption("one flow per tick", "", lambda spec: spec.scheduler.one_per_tick, is_switch=True),
    SchemeOption("controller down", "s", lambda spec: spec.scheduler.down_for_s),
    SchemeOption("most subflows", "", lambda spec: spec.transport.subflows),
)
Setting = tuple[float, ...]
"""The value of each of CONTROLLER_OPTIONS or ASSUMPTIONS."""


@dataclass(frozen=True)
class OptionRow:
    """A value of an option with its points, one per seed; `option` is None for the usual setting."""

    option: SchemeOption | None
    value: float
    points: tuple[PointResult, ...]

    @property
    def label(self) -> str:
        if self.option is None:
            return "usual setting"
        if self.option.is_switch:
            return self.option.words
        return f"{self.option.words} {self.value:g} {self.option.unit}".rstrip()


def messages(point: PointResult) -> float | None:
    """Return messages per second between monitors and controller, in thousands."""
    count = point.metric(CONTROLLER_MESSAGES.name)
    return None if count is None else count / (point.spec.warmup_s + point.spec.seconds) / 1000


def setting(spec: RunSpec, options: Sequence[SchemeOption] = CONTROLLER_OPTIONS) -> Setting:
    return tuple(option.of(spec) for option in options)


def rows(
    points: Sequence[PointResult], options: Sequence[SchemeOption] = CONTROLLER_OPTIONS
) -> list[OptionRow]:
    """Return the usual setting, then every setting that differs from it in one option, in their order.

    The usual value of an option is the one that most points have. Suspect points count where no seed is good.
    """
    usual = tuple(
        Counter(values).most_common(1)[0][0]
        for values in zip(*(setting(point.spec, options) for point in points), strict=True)
    )
    found = kinds.grouped(points, lambda point: setting(point.spec, options))
    made = [OptionRow(None, 0.0, tuple(good(found[usual])))] if usual in found else []
    for n, option in enumerate(options):
        others = {key[n]: of for key, of in found.items() if key != usual and _differs_in(key, usual) == [n]}
        made += [OptionRow(option, value, tuple(good(others[value]))) for value in sorted(others)]
    return made


def _differs_in(one: Setting, other: Setting) -> list[int]:
    return [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


@saving.per_panel(APART, lambda point: ran(point) and is_responsive(point.spec.scheduler))
def by_controller_option(panel: Panel, inputs: Inputs) -> Figure | None:
    of = rows(panel.points)
    if len(of) < 2:
        return None
    columns: Mapping[str, ValueOf] = {
        GOODPUT_MBPS_MEAN.axis: goodput_mbps,
        axis_labels.SUBFLOWS_PER_FLOW: subflows,
        "1000 messages per s": messages,
    }
    sheet = Sheet((0.15 + 0.17 * len(of), len(columns)))
    for axes, (title, value) in zip(sheet.axes[0], columns.items(), strict=True):
        for y, row in enumerate(of):
            if mean := kinds.mean_over(row.points, value):
                look = Look("", "#777777" if row.option is None else "#D55E00")
                kinds.mark(axes, mean, y, look, 3.5)
                if row.option is None:
                    axes.axvline(mean.value, color=look.colour, lw=0.8, ls="--", zorder=1)
            if row.option is not None and row.option is not of[y - 1].option:
                axes.axhline(y - 0.5, color=style.GRID, lw=0.8)
        _column(axes, title, [row.label for row in of], axes is sheet.axes[0][0], 7)
    return sheet.finish(
        option_finding(of) or inputs.title,
        f"{style.network(panel.spec)}, {style.workload(panel.spec)}",
        settings_of(panel),
        ["Dashed: the usual setting.", *style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )


def _column(axes: Axes, title: str, names: Sequence[str], named: bool, size: float) -> None:
    kinds.rows(axes, names, named=named, size=size)
    axes.margins(x=0.12)
    axes.tick_params(axis="x", labelsize=size)
    axes.set_title(title, fontsize=size)


def option_finding(of: Sequence[OptionRow]) -> str:
    """Return the title: the value that moves goodput most, against the usual setting."""
    means = {row.label: mean.value for row in of if (mean := kinds.mean_over(row.points, goodput_mbps))}
    base = means.pop(of[0].label, 0.0) if of[0].option is None else 0.0
    if not base or not means:
        return ""
    most = max(means, key=lambda label: abs(means[label] - base))
    return f"{most[0].upper()}{most[1:]} moves goodput most: {100 * (means[most] / base - 1):+.1f} %"


_CENTRAL = "Hedera"
_SCHEMES = (("#D55E00", "o"), ("#E69F00", "D"), ("#0072B2", "^"), ("#009E73", "*"), ("#CC79A7", "v"))
"""Colours and markers of the schemes of a chart, in their order."""


def _of_central(value: Callable[[RunSpec], float]) -> Callable[[RunSpec], float]:
    return lambda spec: value(spec) if scheme(spec) == _CENTRAL else 0.0


ASSUMPTIONS = (
    SchemeOption("queue", "packets", lambda spec: spec.link.queue_pkts),
    SchemeOption("delay of a link", "us", lambda spec: spec.link.delay_us),
    SchemeOption("min RTO", "ms", lambda spec: spec.stack.min_rto_ms),
    SchemeOption("delayed ACK", "ms", lambda spec: spec.stack.delayed_ack_ms),
    SchemeOption("rate variation", "", lambda spec: spec.scheduler.rate_variation),
    SchemeOption("steady checks", "", lambda spec: spec.scheduler.checks),
    SchemeOption("Hedera: every", "ms", _of_central(lambda spec: spec.scheduler.interval_ms)),
    SchemeOption(
        "Hedera: first fit", "", _of_central(lambda spec: spec.scheduler.name != "annealing"), is_switch=True
    ),
)
IGNORED = (
    *APART, "link.queue_pkts", "link.nic_queue_pkts", "link.delay_us", "stack.min_rto_ms",
    "stack.delayed_ack_ms",
)  # fmt: skip


@dataclass(frozen=True)
class AssumptionEffect:
    """The effect of one assumption on a scheme: changes of goodput in % and of subflows, one per seed."""

    option: SchemeOption
    label: str
    goodput_pct: tuple[float, ...]
    subflows: tuple[float, ...]
    suspect: bool


def scheme(spec: RunSpec) -> str:
    """Return the name of a scheme whatever the assumptions: `2 ms, gap 0.15`, `MPTCP 4`, `Hedera`."""
    if is_responsive(spec.scheduler):
        return f"{spec.scheduler.interval_ms:g} ms, gap {spec.scheduler.demand_gap:g}"
    return _CENTRAL if scheduled(spec) else style.transport(spec.transport.subflows)


def with_equal_seeds(points: Sequence[PointResult]) -> list[PointResult]:
    """Return the points of those seeds that every setting of every scheme has."""
    settings = kinds.grouped(points, lambda point: (scheme(point.spec), setting(point.spec, ASSUMPTIONS)))
    seeds = [{point.seed for point in of} for of in settings.values()]
    common = set.intersection(*seeds) if seeds else set()
    return [point for point in points if point.seed in common]


def changes(points: Sequence[PointResult]) -> dict[str, list[AssumptionEffect]]:
    """Return the changes of each scheme that has a usual setting, seed by seed against it."""
    of_scheme = kinds.grouped(points, lambda point: scheme(point.spec))
    found = {}
    for name, of in sorted(of_scheme.items(), key=lambda one: _order(one[1][0].spec)):
        usual, *others = rows(of, ASSUMPTIONS)
        if usual.option is None and others:
            found[name] = [_change(usual, row, row.option) for row in others if row.option]
    return found


def _order(spec: RunSpec) -> tuple[bool, bool, float]:
    """Schemes on demand first, the fastest monitors before others, and a central scheduler last."""
    on_demand = is_responsive(spec.scheduler)
    return not on_demand, not on_demand and scheduled(spec), spec.scheduler.interval_ms if on_demand else 0.0


def _change(usual: OptionRow, row: OptionRow, option: SchemeOption) -> AssumptionEffect:
    before = {point.seed: point for point in usual.points}
    pairs = [(before[point.seed], point) for point in row.points if point.seed in before]
    return AssumptionEffect(
        option,
        row.label,
        tuple(100 * (goodput_mbps(new) / goodput_mbps(old) - 1) for old, new in pairs),
        tuple(subflows(new) - subflows(old) for old, new in pairs),
        any(point.suspect for pair in pairs for point in pair),
    )


def assumption_finding(of: dict[str, list[AssumptionEffect]]) -> str:
    """Return the title: the change that moves one scheme's goodput most."""
    each = [
        (name, change.label, statistics.fmean(change.goodput_pct))
        for name, found in of.items()
        for change in found
        if change.goodput_pct
    ]
    if not each:
        return ""
    name, label, pct = max(each, key=lambda one: abs(one[2]))
    return f"{label[0].upper()}{label[1:]} moves goodput most: {pct:+.0f} % ({name})"


def _with_equal_seeds(inputs: Inputs) -> Inputs:
    return dataclasses.replace(inputs, points=with_equal_seeds(list(filter(ran, inputs.points))))


@saving.per_panel(IGNORED, prepared=_with_equal_seeds)
def by_assumption(panel: Panel, inputs: Inputs) -> Figure | None:
    of = changes(panel.points)
    if not of:
        return None
    order = {change.label: ASSUMPTIONS.index(change.option) for found in of.values() for change in found}
    labels = sorted(order, key=order.__getitem__)
    sheet = Sheet((0.15 + 0.3 * len(labels), 2))
    looks = [Look(name, *look, "") for name, look in zip(of, _SCHEMES, strict=False)]
    columns: Mapping[str, Callable[[AssumptionEffect], tuple[float, ...]]] = {
        "goodput, change in %": lambda change: change.goodput_pct,
        f"{axis_labels.SUBFLOWS_PER_FLOW}, change": lambda change: change.subflows,
    }
    for axes, (title, values) in zip(sheet.axes[0], columns.items(), strict=True):
        axes.axvline(0.0, color=style.FAINT, lw=0.8, zorder=1)
        for y in range(1, len(labels)):
            axes.axhline(y - 0.5, color=style.GRID, lw=0.8, zorder=1)
        for n, (found, look) in enumerate(zip(of.values(), looks, strict=False)):
            for change in found:
                if mean := kinds.mean_of(values(change), hollow=change.suspect):
                    place = labels.index(change.label) + kinds.beside(n, len(of))
                    kinds.mark(axes, mean, place, look, 4)
        _column(axes, title, labels, axes is sheet.axes[0][0], 7.5)
    return sheet.finish(
        assumption_finding(of) or inputs.title,
        f"{style.network(panel.spec)}, {style.workload(panel.spec)}",
        settings_of(panel, *IGNORED, queues=False),
        ["0 is the usual setting.", *style.doubts(panel.points), style.intervals(len(panel.seeds))],
        [look.key(size=6) for look in looks],
    )


# Places for names beside marks, so that names cover no mark, no whisker and no other name. All lengths are
# in points, counted from the lower left corner of the axes.
HEIGHT, PER_CHARACTER = 8.0, 3.7
"""Height, and width per character, of a name in 7.5-point type."""
_BESIDE = 7.0
_STEPS = (0.0, 9.0, -9.0, 16.0, -16.0, 24.0, -24.0, 33.0, -33.0)
_MARK, _WHISKER = 4.0, 2.5
_MISTAKEN, _FAR = 20.0, 0.1
"""Costs, as covered areas, of a name that is nearer to another mark than to its own, and of each point of
distance."""


@dataclass(frozen=True)
class Box:
    """A rectangle that names should not cover."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Return the area that both have in common."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, wide) * max(0.0, high)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class NamedMark:
    """A mark at (x, y) with whiskers of these half lengths, and its name."""

    name: str
    x: float
    y: float
    x_whisker: float = 0.0
    y_whisker: float = 0.0

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Return what a name may not cover: the mark and its whiskers."""
        x, y = self.x, self.y
        return (
            Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK),
            Box(x - self.x_whisker, y - _WHISKER, x + self.x_whisker, y + _WHISKER),
            Box(x - _WHISKER, y - self.y_whisker, x + _WHISKER, y + self.y_whisker),
        )

    def distance(self, x: float, y: float) -> float:
        return math.hypot(x - self.x, y - self.y)

    @property
    def candidates(self) -> Iterator[Box]:
        """Yield boxes for the name, right and left of the mark, the closest ones first."""
        width = PER_CHARACTER * len(self.name)
        for step in _STEPS:
            for left in (self.x + _BESIDE, self.x - _BESIDE - width):
                bottom = self.y + step - HEIGHT / 2
                yield Box(left, bottom, left + width, bottom + HEIGHT)


def places(spots: Sequence[NamedMark], size: tuple[float, float]) -> list[Box]:
    """Return a box for the name of each mark, on axes of this width and height."""
    axes = Box(0.0, 0.0, *size)
    taken = [box for spot in spots for box in spot.boxes]
    found: dict[int, Box] = {}
    for n in sorted(range(len(spots)), key=lambda n: -spots[n].y):
        others = [*spots[:n], *spots[n + 1 :]]
        found[n] = min(spots[n].candidates, key=lambda box: _cost(box, spots[n], others, taken, axes))
        taken.append(found[n])
    return [found[n] for n in range(len(spots))]


def _cost(
    box: Box, own: NamedMark, others: Sequence[NamedMark], taken: Sequence[Box], axes: Box
) -> tuple[float, float]:
    """Return the area outside the axes, which counts first, and what else is wrong with a place."""
    covered = sum(box.overlap(other) for other in taken)
    outside = max(0.0, box.area - box.overlap(axes))
    begins = box.left if box.left > own.x else box.right, (box.bottom + box.top) / 2
    distance = own.distance(*begins)
    mistaken = any(other.distance(*begins) < distance for other in others)
    return round(outside, 6), covered + _MISTAKEN * mistaken + _FAR * distance
