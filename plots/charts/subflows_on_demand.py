"""Schemes that add subflows on demand beside others: throughput or completion of jobs against subflows per
flow, and the effect of one option or one assumption changed at a time.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.completion import mean_job_s
from analysis.quantities import CONTROLLER_MESSAGES, GOODPUT_MBPS_MEAN
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.schedulers import is_responsive, option_words, scheduled, scheduler_title
from model.spec import RunSpec
from model.transports import USUAL_ROUTING, transport
from plots.data import Inputs, Panel, Point, good, interval_pct, panels
from plots.shared import axis_labels, saving, style
from plots.shared.labels import HEIGHT, NamedMark, places
from plots.shared.sheet import Caption, Sheet, Text
from workloads import matrices

APART = ("scheduler", "transport.cc", "routing", "link.ecn_pkts")
"""Fields in which the schemes of one chart differ."""
RESPONSIVE, CENTRAL, HASHED = "subflows added on demand", "central scheduler", "without a controller"
TRADE_OFF_LOOKS = {RESPONSIVE: ("#D55E00", "o"), CENTRAL: ("#009E73", "*"), HASHED: ("#0072B2", "^")}
USUAL_MOST = 4
_HEIGHT_IN = 3.1
_MAX_LABELS = 12
_SIZE_PT = 290.0, 72 * _HEIGHT_IN
"""The axes' size, for the places of names."""


@dataclass(frozen=True)
class SchemeMark:
    """A scheme: its name and kind, and subflows per flow and value of each seed."""

    name: str
    kind: str
    subflows: tuple[float, ...]
    values: tuple[float, ...]
    suspect: bool


def draw_trade_off(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if point.flows and not point.failed), ignoring=APART)
    return saving.draw_panels("trade_off", inputs, _trade_off_chart, of)


def job_s(point: Point) -> float | None:
    """Return the mean completion time of jobs in s; None where flows have no size or a job is incomplete."""
    known = matrices.MATRICES[point.spec.workload.matrix].defaults | dict(point.spec.workload.params)
    each = int(known.get("maps", 1)) * int(known.get("reduces", 1))
    return mean_job_s(point.flows, each)


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


def by_scheme(points: Iterable[Point], named: Callable[[Point], str]) -> dict[str, Sequence[Point]]:
    """Return the good points of each scheme, by its name; the suspect ones where none is good."""
    schemes: dict[str, list[Point]] = {}
    for point in points:
        schemes.setdefault(named(point), []).append(point)
    return {called: good(of) for called, of in schemes.items()}


def name(point: Point) -> str:
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


def _unusual(point: Point) -> str:
    """Return what else is set: `, checks=6`, `, M=8`."""
    words = [word for word in option_words(point.spec.scheduler).split(":") if not word.startswith("gap=")]
    most = [f"M={point.subflows}"] if point.subflows != USUAL_MOST else []
    return "".join(f", {word}" for word in (*words, *most) if word)


def subflows(point: Point) -> float:
    """Return the mean number of subflows per flow; the point must have flows."""
    return statistics.fmean(flow.subflows_joined for flow in point.flows)


def goodput_mbps(point: Point) -> float:
    """Return the mean goodput per flow; the point must have flows."""
    return statistics.fmean(flow.goodput_mbps for flow in point.flows)


def _has_sizes(panel: Panel) -> bool:
    return any(flow.size_bytes for point in panel.points for flow in point.flows)


def kind_of(point: Point) -> str:
    """Return what chooses the paths of its subflows: one of TRADE_OFF_LOOKS."""
    if is_responsive(point.spec.scheduler):
        return RESPONSIVE
    return CENTRAL if scheduled(point.spec) else HASHED


def trade_off_finding(of: Sequence[SchemeMark], sized: bool) -> str:
    """Return the title: the best scheme that adds subflows on demand, and the best of the others."""
    best = min if sized else max
    ours, others = ([mark for mark in of if (mark.kind == RESPONSIVE) is on] for on in (True, False))
    if not ours:
        return "Subflows and what they carry"
    own = best(ours, key=lambda mark: statistics.fmean(mark.values))
    on_demand = f"On demand: {_value(own, sized)} with {statistics.fmean(own.subflows):.1f} subflows per flow"
    if not others:
        return on_demand
    first = best(others, key=lambda mark: statistics.fmean(mark.values))
    return f"{on_demand}; best of the others: {_value(first, sized)} ({first.name})"


def _value(mark: SchemeMark, sized: bool) -> str:
    mean = statistics.fmean(mark.values)
    return f"{mean:.2f} s" if sized else f"{mean:.0f} Mb/s"


def _trade_off_chart(panel: Panel) -> Figure | None:
    of, sized = marks(panel), _has_sizes(panel)
    if not of:
        return None
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    for mark in of:
        _draw(axes, mark)
    axes.set_xlabel(f"{axis_labels.SUBFLOWS_PER_FLOW}, mean")
    axes.set_ylabel("completion of a job (s)" if sized else GOODPUT_MBPS_MEAN.axis)
    axes.margins(x=0.12, y=0.15)
    if len(of) <= _MAX_LABELS:
        _label(axes, of)
    return sheet.finish(
        Text(trade_off_finding(of, sized), _subtitle(panel), _trade_off_caption(panel)), _trade_off_legend(of)
    )


def _draw(axes: Axes, mark: SchemeMark) -> None:
    colour, marker = TRADE_OFF_LOOKS[mark.kind]
    axes.errorbar(
        statistics.fmean(mark.subflows), statistics.fmean(mark.values),
        xerr=interval_pct(mark.subflows) or 0.0, yerr=interval_pct(mark.values) or 0.0, color=colour,
        marker=marker, ms=9 if marker == "*" else 6, lw=1.2, capsize=2.5, zorder=4,
        markerfacecolor="white" if mark.suspect else colour,
    )  # fmt: skip


def _label(axes: Axes, of: Sequence[SchemeMark]) -> None:
    """Write names beside the marks, where there is room."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x_scale, y_scale = _SIZE_PT[0] / (high - low), _SIZE_PT[1] / (top - bottom)
    spots = [
        NamedMark(
            mark.name,
            (statistics.fmean(mark.subflows) - low) * x_scale,
            (statistics.fmean(mark.values) - bottom) * y_scale,
            (interval_pct(mark.subflows) or 0.0) * x_scale,
            (interval_pct(mark.values) or 0.0) * y_scale,
        )
        for mark in of
    ]
    for spot, box in zip(spots, places(spots, _SIZE_PT), strict=True):
        x, side = (box.left, "left") if box.left > spot.x else (box.right, "right")
        axes.annotate(
            spot.name, (low + spot.x / x_scale, bottom + spot.y / y_scale),
            xytext=(x - spot.x, box.bottom + HEIGHT / 2 - spot.y), textcoords="offset points", ha=side,
            va="center", fontsize=7.5, color=style.INK,
        )  # fmt: skip


def _trade_off_legend(of: Sequence[SchemeMark]) -> list[Artist]:
    kinds = dict.fromkeys(mark.kind for mark in of)
    return [
        Line2D(
            [], [], color=TRADE_OFF_LOOKS[kind][0], marker=TRADE_OFF_LOOKS[kind][1], ls="", ms=6, label=kind
        )
        for kind in kinds
    ]


def _subtitle(panel: Panel) -> str:
    return f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"


def _trade_off_caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    return Caption(
        style.parameters(bare, congestion=""),
        [*style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )


USUAL, CHANGED = "#777777", "#D55E00"
_OPTION_ROW_IN = 0.17
ValueOf = Callable[[Point], float | None]


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
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        if self.option is None:
            return "usual setting"
        if self.option.is_switch:
            return self.option.words
        return f"{self.option.words} {self.value:g} {self.option.unit}".rstrip()


def messages(point: Point) -> float | None:
    """Return messages per second between monitors and controller, in thousands."""
    count = point.recorded(CONTROLLER_MESSAGES)
    return None if count is None else count / (point.spec.warmup_s + point.spec.seconds) / 1000


PANELS: tuple[tuple[str, ValueOf], ...] = (
    (GOODPUT_MBPS_MEAN.axis, goodput_mbps),
    (axis_labels.SUBFLOWS_PER_FLOW, subflows),
    ("1000 messages per s", messages),
)


def draw_by_controller_option(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    ran = (point for point in inputs.points if point.flows and not point.failed)
    of = panels((point for point in ran if is_responsive(point.spec.scheduler)), ignoring=APART)
    return saving.draw_panels("by_controller_option", inputs, _option_chart, of)


def setting(spec: RunSpec, options: Sequence[SchemeOption] = CONTROLLER_OPTIONS) -> Setting:
    return tuple(option.of(spec) for option in options)


def rows(points: Sequence[Point], options: Sequence[SchemeOption] = CONTROLLER_OPTIONS) -> list[OptionRow]:
    """Return the usual setting, then every setting that differs from it in one option, in their order.

    The usual value of an option is the one that most points have. Suspect points count where no seed is good.
    """
    usual = tuple(
        Counter(values).most_common(1)[0][0]
        for values in zip(*(setting(point.spec, options) for point in points), strict=True)
    )
    found: dict[Setting, list[Point]] = {}
    for point in points:
        found.setdefault(setting(point.spec, options), []).append(point)
    made = [OptionRow(None, 0.0, tuple(good(found[usual])))] if usual in found else []
    for n, option in enumerate(options):
        others = {key[n]: of for key, of in found.items() if key != usual and _differs_in(key, usual) == [n]}
        made += [OptionRow(option, value, tuple(good(others[value]))) for value in sorted(others)]
    return made


def _differs_in(one: Setting, other: Setting) -> list[int]:
    return [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _option_chart(panel: Panel) -> Figure | None:
    of = rows(panel.points)
    if len(of) < 2:
        return None
    sheet = Sheet((0.15 + _OPTION_ROW_IN * len(of), len(PANELS)))
    for axes, (title, value) in zip(sheet.axes[0], PANELS, strict=True):
        _option_column(axes, of, value)
        axes.set_title(title, fontsize=7, loc="left")
    sheet.axes[0][0].set_yticks(range(len(of)), [row.label for row in of], fontsize=7)
    words = Text(
        option_finding(of),
        f"{style.network(panel.spec)}, {style.workload(panel.spec)}",
        _option_caption(panel),
    )
    return sheet.finish(words)


def _option_column(axes: Axes, of: Sequence[OptionRow], value_of: ValueOf) -> None:
    style.grid_of_rows(axes)
    for y, row in enumerate(of):
        values = _values(row, value_of)
        if not values:
            continue
        colour = USUAL if row.option is None else CHANGED
        mean, half = statistics.fmean(values), interval_pct(values) or 0.0
        suspect = all(point.suspect for point in row.points)
        axes.errorbar(
            mean, y, xerr=half, color=colour, marker="o", ms=3.5, lw=1.0, capsize=2,
            markerfacecolor="white" if suspect else colour,
        )  # fmt: skip
        if row.option is None:
            axes.axvline(mean, color=USUAL, lw=0.8, ls="--", zorder=1)
        elif row.option is not of[y - 1].option:
            axes.axhline(y - 0.5, color=style.GRID, lw=0.8)
    axes.set_ylim(len(of) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.set_yticks(range(len(of)), [""] * len(of))
    axes.tick_params(axis="x", labelsize=7)


def _values(row: OptionRow, value_of: ValueOf) -> list[float]:
    return [value for point in row.points if (value := value_of(point)) is not None]


def option_finding(of: Sequence[OptionRow]) -> str:
    """Return the title: the value that moves goodput most, against the usual setting."""
    usual = _values(of[0], goodput_mbps) if of[0].option is None else []
    means = {row.label: statistics.fmean(_values(row, goodput_mbps)) for row in of if row.option is not None}
    if not usual or not means:
        return "Options of monitors and controller"
    base = statistics.fmean(usual)
    most = max(means, key=lambda label: abs(means[label] - base))
    return f"{most[0].upper()}{most[1:]} moves goodput most: {100 * (means[most] / base - 1):+.1f} %"


def _option_caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    return Caption(
        style.parameters(bare, congestion=""),
        ["Dashed: the usual setting.", *style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )


_CENTRAL = "Hedera"
ASSUMPTION_LOOKS = (("#D55E00", "o"), ("#E69F00", "D"), ("#0072B2", "^"), ("#009E73", "*"), ("#CC79A7", "v"))
_ASSUMPTION_ROW_IN = 0.3


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


def draw_by_assumption(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    usable = with_equal_seeds([point for point in inputs.points if not point.failed and point.flows])
    of = panels(usable, ignoring=IGNORED)
    return saving.draw_panels("by_assumption", inputs, _assumption_chart, of)


def scheme(spec: RunSpec) -> str:
    """Return the name of a scheme whatever the assumptions: `2 ms, gap 0.15`, `MPTCP 4`, `Hedera`."""
    if is_responsive(spec.scheduler):
        return f"{spec.scheduler.interval_ms:g} ms, gap {spec.scheduler.demand_gap:g}"
    return _CENTRAL if scheduled(spec) else style.transport(spec.transport.subflows)


def with_equal_seeds(points: Sequence[Point]) -> list[Point]:
    """Return the points of those seeds that every setting of every scheme has."""
    seeds: dict[tuple[str, Setting], set[int]] = {}
    for point in points:
        seeds.setdefault((scheme(point.spec), setting(point.spec, ASSUMPTIONS)), set()).add(point.seed)
    common = set.intersection(*seeds.values()) if seeds else set()
    return [point for point in points if point.seed in common]


def changes(points: Sequence[Point]) -> dict[str, list[AssumptionEffect]]:
    """Return the changes of each scheme that has a usual setting, seed by seed against it."""
    of_scheme: dict[str, list[Point]] = {}
    for point in points:
        of_scheme.setdefault(scheme(point.spec), []).append(point)
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
        return "Effects of assumptions"
    name, label, pct = max(each, key=lambda one: abs(one[2]))
    return f"{label[0].upper()}{label[1:]} moves goodput most: {pct:+.0f} % ({name})"


def _assumption_chart(panel: Panel) -> Figure | None:
    of = changes(panel.points)
    if not of:
        return None
    places = {change.label: ASSUMPTIONS.index(change.option) for found in of.values() for change in found}
    labels = sorted(places, key=places.__getitem__)
    sheet = Sheet((0.15 + _ASSUMPTION_ROW_IN * len(labels), 2))
    columns = (
        ("goodput, change in %", "goodput_pct"),
        (f"{axis_labels.SUBFLOWS_PER_FLOW}, change", "subflows"),
    )
    for axes, (title, field) in zip(sheet.axes[0], columns, strict=True):
        _assumption_column(axes, of, labels, field)
        axes.set_title(title, fontsize=7.5, loc="left")
    sheet.axes[0][0].set_yticks(range(len(labels)), labels, fontsize=7.5)
    words = Text(
        assumption_finding(of),
        f"{style.network(panel.spec)}, {style.workload(panel.spec)}",
        _assumption_caption(panel),
    )
    return sheet.finish(words, _assumption_legend(list(of)))


def _assumption_column(
    axes: Axes, of: dict[str, list[AssumptionEffect]], labels: Sequence[str], field: str
) -> None:
    style.grid_of_rows(axes)
    axes.axvline(0.0, color=style.FAINT, lw=0.8, zorder=1)
    for y in range(1, len(labels)):
        axes.axhline(y - 0.5, color=style.GRID, lw=0.8, zorder=1)
    for n, (found, (colour, marker)) in enumerate(zip(of.values(), ASSUMPTION_LOOKS, strict=False)):
        offset = 0.6 * ((n + 0.5) / len(of) - 0.5)
        for change in found:
            values = getattr(change, field)
            if values:
                axes.errorbar(
                    statistics.fmean(values), labels.index(change.label) + offset,
                    xerr=interval_pct(values) or 0.0, color=colour, marker=marker,
                    ms=6 if marker == "*" else 3.5, lw=1.0, capsize=1.5, zorder=3,
                )  # fmt: skip
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.set_yticks(range(len(labels)), [""] * len(labels))
    axes.tick_params(axis="x", labelsize=7.5)


def _assumption_legend(names: Sequence[str]) -> list[Artist]:
    return [
        Line2D([], [], color=colour, marker=marker, ls="", ms=6, label=name)
        for name, (colour, marker) in zip(names, ASSUMPTION_LOOKS, strict=False)
    ]


def _assumption_caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*IGNORED))
    words = style.parameters(bare, congestion="")
    return Caption(
        [word for word in words if not word.startswith(("queues", "unbounded"))],
        ["0 is the usual setting.", *style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )
