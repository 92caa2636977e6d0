"""Throughput of long flows, or completion of jobs, against the mean number of subflows of a flow."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.completion import mean_job_s
from analysis.quantities import GOODPUT_MBPS_MEAN
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.responsive import is_responsive, option_words
from model.result import Status
from model.schedulers import scheduled, scheduler_title
from model.transports import USUAL_ROUTING, transport
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.intervals import interval_pct
from plots.shared.labels import HEIGHT, Spot, places
from plots.shared.sheet import Caption, Sheet, Text
from workloads import matrices

CHART = "trade_off"
APART = ("scheduler", "transport.cc", "routing", "link.ecn_pkts")
"""Fields in which the schemes of one chart differ."""
RESPONSIVE, CENTRAL, HASHED = "subflows added on demand", "central scheduler", "without a controller"
LOOKS = {RESPONSIVE: ("#D55E00", "o"), CENTRAL: ("#009E73", "*"), HASHED: ("#0072B2", "^")}
USUAL_MOST = 4
_HEIGHT_IN = 3.1
_MAX_LABELS = 12
_SIZE_PT = 290.0, 72 * _HEIGHT_IN
"""The axes' size, for the places of names."""


@dataclass(frozen=True)
class Mark:
    """A scheme: its name and kind, and subflows per flow and value of each seed."""

    name: str
    kind: str
    subflows: tuple[float, ...]
    values: tuple[float, ...]
    suspect: bool


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if point.flows and not point.failed), ignoring=APART)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def job_s(point: Point) -> float | None:
    """Return the mean completion time of jobs in s; None where flows have no size or a job is incomplete."""
    known = matrices.MATRICES[point.spec.workload.matrix].defaults | dict(point.spec.workload.params)
    each = int(known.get("maps", 1)) * int(known.get("reduces", 1))
    return mean_job_s(point.flows, each)


def marks(panel: Panel) -> list[Mark]:
    """Return a mark for each scheme with a value; suspect points count where no seed is good."""
    names: dict[str, list[Point]] = {}
    for point in panel.points:
        names.setdefault(name(point), []).append(point)
    sized = _has_sizes(panel)
    found = []
    for called, of in names.items():
        good = [point for point in of if point.status is Status.OK] or of
        pairs = [(subflows(point), job_s(point) if sized else goodput_mbps(point)) for point in good]
        known = [(count, value) for count, value in pairs if value is not None]
        if known:
            counts, values = zip(*known, strict=True)
            found.append(Mark(called, kind_of(good[0]), counts, values, all(p.suspect for p in good)))
    return sorted(found, key=lambda mark: statistics.fmean(mark.subflows))


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
    """Return what chooses the paths of its subflows: one of LOOKS."""
    if is_responsive(point.spec.scheduler):
        return RESPONSIVE
    return CENTRAL if scheduled(point.spec) else HASHED


def finding(of: Sequence[Mark], sized: bool) -> str:
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


def _value(mark: Mark, sized: bool) -> str:
    mean = statistics.fmean(mark.values)
    return f"{mean:.2f} s" if sized else f"{mean:.0f} Mb/s"


def _chart(panel: Panel) -> Figure | None:
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
    return sheet.finish(Text(finding(of, sized), _subtitle(panel), _caption(panel)), _legend(of))


def _draw(axes: Axes, mark: Mark) -> None:
    colour, marker = LOOKS[mark.kind]
    axes.errorbar(
        statistics.fmean(mark.subflows), statistics.fmean(mark.values),
        xerr=interval_pct(mark.subflows) or 0.0, yerr=interval_pct(mark.values) or 0.0, color=colour,
        marker=marker, ms=9 if marker == "*" else 6, lw=1.2, capsize=2.5, zorder=4,
        markerfacecolor="white" if mark.suspect else colour,
    )  # fmt: skip


def _label(axes: Axes, of: Sequence[Mark]) -> None:
    """Write names beside the marks, where there is room."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x_scale, y_scale = _SIZE_PT[0] / (high - low), _SIZE_PT[1] / (top - bottom)
    spots = [
        Spot(
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


def _legend(of: Sequence[Mark]) -> list[Artist]:
    kinds = dict.fromkeys(mark.kind for mark in of)
    return [
        Line2D([], [], color=LOOKS[kind][0], marker=LOOKS[kind][1], ls="", ms=6, label=kind) for kind in kinds
    ]


def _subtitle(panel: Panel) -> str:
    return f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"


def _caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    return Caption(
        style.parameters(bare, congestion=""),
        [*style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )
