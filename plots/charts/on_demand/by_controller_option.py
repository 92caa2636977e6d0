"""Subflows on demand with one option of monitors or controller changed at a time: one row per value."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.quantities import CONTROLLER_MESSAGES, GOODPUT_MBPS_MEAN
from model.responsive import is_responsive
from model.result import Status
from model.spec import RunSpec
from plots.charts.on_demand.trade_off import APART, goodput_mbps, subflows
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "by_controller_option"
USUAL, CHANGED = "#777777", "#D55E00"
_ROW_IN = 0.17
ValueOf = Callable[[Point], float | None]


@dataclass(frozen=True)
class Option:
    """An option as rows show it: what it is called, its unit, and where a spec has it."""

    words: str
    unit: str
    of: Callable[[RunSpec], float]


OPTIONS = (
    Option("monitor interval", "ms", lambda spec: spec.scheduler.interval_ms),
    Option("demand gap", "", lambda spec: spec.scheduler.demand_gap),
    Option("rate variation", "", lambda spec: spec.scheduler.rate_variation),
    Option("steady checks", "", lambda spec: spec.scheduler.checks),
    Option("demand change", "", lambda spec: spec.scheduler.demand_change),
    Option("message delay", "ms", lambda spec: spec.scheduler.message_ms),
    Option("message loss", "", lambda spec: spec.scheduler.message_loss),
    Option("one flow per tick", "", lambda spec: spec.scheduler.one_per_tick),
    Option("controller down", "s", lambda spec: spec.scheduler.down_for_s),
    Option("most subflows", "", lambda spec: spec.transport.subflows),
)
Setting = tuple[float, ...]
"""The value of each of OPTIONS."""


@dataclass(frozen=True)
class Row:
    """A value of an option with its points, one per seed; `option` is None for the usual setting."""

    option: Option | None
    value: float
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        if self.option is None:
            return "usual setting"
        if self.option.words == "one flow per tick":
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


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    ran = (point for point in inputs.points if point.flows and not point.failed)
    of = panels((point for point in ran if is_responsive(point.spec.scheduler)), ignoring=APART)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def setting(spec: RunSpec, options: Sequence[Option] = OPTIONS) -> Setting:
    return tuple(option.of(spec) for option in options)


def rows(points: Sequence[Point], options: Sequence[Option] = OPTIONS) -> list[Row]:
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
    made = [Row(None, 0.0, _good(found[usual]))] if usual in found else []
    for n, option in enumerate(options):
        others = {key[n]: of for key, of in found.items() if key != usual and _differs_in(key, usual) == [n]}
        made += [Row(option, value, _good(others[value])) for value in sorted(others)]
    return made


def _differs_in(one: Setting, other: Setting) -> list[int]:
    return [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _good(points: Sequence[Point]) -> tuple[Point, ...]:
    return tuple([point for point in points if point.status is Status.OK] or points)


def _chart(panel: Panel) -> Figure | None:
    of = rows(panel.points)
    if len(of) < 2:
        return None
    sheet = Sheet((0.15 + _ROW_IN * len(of), len(PANELS)))
    for axes, (title, value) in zip(sheet.axes[0], PANELS, strict=True):
        _column(axes, of, value)
        axes.set_title(title, fontsize=7, loc="left")
    sheet.axes[0][0].set_yticks(range(len(of)), [row.label for row in of], fontsize=7)
    words = Text(finding(of), f"{style.network(panel.spec)}, {style.workload(panel.spec)}", _caption(panel))
    return sheet.finish(words)


def _column(axes: Axes, of: Sequence[Row], value_of: ValueOf) -> None:
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
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


def _values(row: Row, value_of: ValueOf) -> list[float]:
    return [value for point in row.points if (value := value_of(point)) is not None]


def finding(of: Sequence[Row]) -> str:
    """Return the title: the value that moves goodput most, against the usual setting."""
    usual = _values(of[0], goodput_mbps) if of[0].option is None else []
    means = {row.label: statistics.fmean(_values(row, goodput_mbps)) for row in of if row.option is not None}
    if not usual or not means:
        return "Options of monitors and controller"
    base = statistics.fmean(usual)
    most = max(means, key=lambda label: abs(means[label] - base))
    return f"{most[0].upper()}{most[1:]} moves goodput most: {100 * (means[most] / base - 1):+.1f} %"


def _caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    return Caption(
        style.parameters(bare, congestion=""),
        ["Dashed: the usual setting.", *style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )
