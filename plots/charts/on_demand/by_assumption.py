"""Changes of goodput and subflows of each scheme if one assumption differs from the usual setting."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from model.responsive import is_responsive
from model.schedulers import scheduled
from model.spec import RunSpec
from plots.charts.on_demand.by_controller_option import Option, Row, Setting, rows, setting
from plots.charts.on_demand.trade_off import APART, goodput_mbps, subflows
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "by_assumption"
_CENTRAL = "Hedera"
_FIRST_FIT = "Hedera: first fit"
LOOKS = (("#D55E00", "o"), ("#E69F00", "D"), ("#0072B2", "^"), ("#009E73", "*"), ("#CC79A7", "v"))
_ROW_IN = 0.3
ValueOf = Callable[[Point], float]


def _of_central(value: Callable[[RunSpec], float]) -> Callable[[RunSpec], float]:
    return lambda spec: value(spec) if scheme(spec) == _CENTRAL else 0.0


OPTIONS = (
    Option("queue", "packets", lambda spec: spec.link.queue_pkts),
    Option("delay of a link", "us", lambda spec: spec.link.delay_us),
    Option("min RTO", "ms", lambda spec: spec.stack.min_rto_ms),
    Option("delayed ACK", "ms", lambda spec: spec.stack.delayed_ack_ms),
    Option("rate variation", "", lambda spec: spec.scheduler.rate_variation),
    Option("steady checks", "", lambda spec: spec.scheduler.checks),
    Option("Hedera: every", "ms", _of_central(lambda spec: spec.scheduler.interval_ms)),
    Option(_FIRST_FIT, "", _of_central(lambda spec: spec.scheduler.name != "annealing")),
)
IGNORED = (
    *APART, "link.queue_pkts", "link.nic_queue_pkts", "link.delay_us", "stack.min_rto_ms",
    "stack.delayed_ack_ms",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """The effect of one assumption on a scheme: changes of goodput in % and of subflows, one per seed."""

    label: str
    goodput_pct: tuple[float, ...]
    subflows: tuple[float, ...]


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    usable = with_equal_seeds([point for point in inputs.points if not point.failed and point.flows])
    of = panels(usable, ignoring=IGNORED)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def scheme(spec: RunSpec) -> str:
    """Return the name of a scheme whatever the assumptions: `2 ms, gap 0.15`, `MPTCP 4`, `Hedera`."""
    if is_responsive(spec.scheduler):
        return f"{spec.scheduler.interval_ms:g} ms, gap {spec.scheduler.demand_gap:g}"
    return _CENTRAL if scheduled(spec) else style.transport(spec.transport.subflows)


def with_equal_seeds(points: Sequence[Point]) -> list[Point]:
    """Return the points of those seeds that every setting of every scheme has."""
    seeds: dict[tuple[str, Setting], set[int]] = {}
    for point in points:
        seeds.setdefault((scheme(point.spec), setting(point.spec, OPTIONS)), set()).add(point.seed)
    common = set.intersection(*seeds.values()) if seeds else set()
    return [point for point in points if point.seed in common]


def changes(points: Sequence[Point]) -> dict[str, list[Change]]:
    """Return the changes of each scheme that has a usual setting, seed by seed against it."""
    of_scheme: dict[str, list[Point]] = {}
    for point in points:
        of_scheme.setdefault(scheme(point.spec), []).append(point)
    found = {}
    for name, of in sorted(of_scheme.items(), key=lambda one: _order(one[1][0].spec)):
        usual, *others = rows(of, OPTIONS)
        if usual.option is None and others:
            found[name] = [_change(usual, row) for row in others]
    return found


def _order(spec: RunSpec) -> tuple[bool, bool, float]:
    """Schemes on demand first, the fastest monitors before others, and a central scheduler last."""
    on_demand = is_responsive(spec.scheduler)
    return not on_demand, not on_demand and scheduled(spec), spec.scheduler.interval_ms if on_demand else 0.0


def _change(usual: Row, row: Row) -> Change:
    before = {point.seed: point for point in usual.points}
    pairs = [(before[point.seed], point) for point in row.points if point.seed in before]
    return Change(
        _FIRST_FIT if row.option and row.option.words == _FIRST_FIT else row.label,
        tuple(100 * (goodput_mbps(new) / goodput_mbps(old) - 1) for old, new in pairs),
        tuple(subflows(new) - subflows(old) for old, new in pairs),
    )


def finding(of: dict[str, list[Change]]) -> str:
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


def _chart(panel: Panel) -> Figure | None:
    of = changes(panel.points)
    if not of:
        return None
    order = {option.words: n for n, option in enumerate(OPTIONS)}
    labels = sorted(
        dict.fromkeys(change.label for found in of.values() for change in found),
        key=lambda label: next(n for words, n in order.items() if label.startswith(words)),
    )
    sheet = Sheet((0.15 + _ROW_IN * len(labels), 2))
    columns = (
        ("goodput, change in %", "goodput_pct"),
        (f"{axis_labels.SUBFLOWS_PER_FLOW}, change", "subflows"),
    )
    for axes, (title, field) in zip(sheet.axes[0], columns, strict=True):
        _column(axes, of, labels, field)
        axes.set_title(title, fontsize=7.5, loc="left")
    sheet.axes[0][0].set_yticks(range(len(labels)), labels, fontsize=7.5)
    words = Text(finding(of), f"{style.network(panel.spec)}, {style.workload(panel.spec)}", _caption(panel))
    return sheet.finish(words, _legend(list(of)))


def _column(axes: Axes, of: dict[str, list[Change]], labels: Sequence[str], field: str) -> None:
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    axes.axvline(0.0, color=style.FAINT, lw=0.8, zorder=1)
    for y in range(1, len(labels)):
        axes.axhline(y - 0.5, color=style.GRID, lw=0.8, zorder=1)
    for n, (found, (colour, marker)) in enumerate(zip(of.values(), LOOKS, strict=False)):
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


def _legend(names: Sequence[str]) -> list[Artist]:
    return [
        Line2D([], [], color=colour, marker=marker, ls="", ms=6, label=name)
        for name, (colour, marker) in zip(names, LOOKS, strict=False)
    ]


def _caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*IGNORED))
    words = style.parameters(bare, congestion="")
    return Caption(
        [word for word in words if not word.startswith(("queues", "unbounded"))],
        ["0 is the usual setting.", *style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )
