"""Flow-level models beside the packet-level simulator: mean goodput by subflows, and every flow's.

Points belong together where they differ in the engine alone: the same flows over the same paths. One chart a
network that more than one engine ran.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from engines.registry import FLOW_LEVEL, MAX_MIN, SIMULATOR
from model.result import Status
from plots.data import REFERENCE, Level, Panel, PointSummary, Setting, file_stems, mean_ranks
from plots.shared import saving, style
from plots.shared.sheet import Sheet, Text

CHART = "flow_level"
ENGINES = {
    SIMULATOR: ("packet level", "#111111"),
    FLOW_LEVEL: ("flow level, equilibrium", "#8a8a8a"),
    MAX_MIN: ("flow level, max-min", "#d0d0d0"),
}
"""What each is called, and its shade: black bars and grey bars, as the paper has them."""
_RANK_COLOURS = {SIMULATOR: "#111111", FLOW_LEVEL: "#0072B2", MAX_MIN: "#E69F00"}
_HEIGHT_IN = 1.9


def draw(
    points: Iterable[PointSummary],
    out: Path,
    *,
    expected: Sequence[int] = (),
    levels: Sequence[Level] = (),
) -> list[Path]:
    """One chart a network and setting that a model ran, as `registry.Chart.draw`; means are drawn."""
    del expected
    of = _panels(points)
    paths: list[Path] = []
    for panel, stem in zip(of, file_stems(CHART, of), strict=True):
        with style.look():
            paths += saving.save(_chart(panel, levels), out, stem)
    return paths


def _panels(points: Iterable[PointSummary]) -> list[Panel]:
    """One for everything that differs in engine, subflows and seed alone."""
    groups: dict[Setting, list[PointSummary]] = {}
    for point in points:
        usable = point.flows_pct and point.status is not Status.FAILED and point.engine in ENGINES
        if point.workload != REFERENCE and usable:
            setting = dataclasses.replace(point.setting, engine=SIMULATOR)
            groups.setdefault(setting, []).append(point)
    return [
        Panel(setting, tuple(sorted({point.subflows for point in groups[setting]})), tuple(groups[setting]))
        for setting in sorted(groups)
    ]


def mean_pct(panel: Panel, engine: str, subflows: int) -> float | None:
    """Mean goodput in %, over the seeds; None where the engine did not run it."""
    means = [statistics.fmean(point.flows_pct) for point in _of(panel, engine, subflows)]
    return statistics.fmean(means) if means else None


def difference(panel: Panel, engine: str) -> tuple[float, float] | None:
    """Of a model: its mean less packets' in points, on average over the numbers of subflows that both have,
    and the one furthest from 0."""
    off = [
        model - packets
        for count in panel.subflows
        if (model := mean_pct(panel, engine, count)) is not None
        and (packets := mean_pct(panel, SIMULATOR, count)) is not None
    ]
    return (statistics.fmean(off), max(off, key=abs)) if off else None


def finding(panel: Panel) -> str:
    """The title: how far the equilibrium is off packets, or what it says where there are none."""
    off = difference(panel, FLOW_LEVEL)
    if off is not None:
        return f"Equilibrium less packets: {off[0]:+.1f} points on average, {off[1]:+.1f} at most"
    most = panel.subflows[-1]
    told = mean_pct(panel, FLOW_LEVEL, most)
    return (
        "Flow level" if told is None else f"{style.transport(most)} at equilibrium: {told:.0f} % of optimal"
    )


def _of(panel: Panel, engine: str, subflows: int) -> list[PointSummary]:
    return [point for point in panel.points if (point.engine, point.subflows) == (engine, subflows)]


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure:
    ends = sorted({panel.subflows[0], panel.subflows[-1]})
    beside = [level for level in style.levels_of(panel, levels, "mean") if not level.shape]
    sheet = Sheet((_HEIGHT_IN, 1), (_HEIGHT_IN, len(ends)))
    here = [engine for engine in ENGINES if any(point.engine == engine for point in panel.points)]
    _bars(sheet.axes[0][0], panel, here, beside)
    for place, (axes, count) in enumerate(zip(sheet.axes[1], ends, strict=True)):
        _ranks(axes, panel, here, count)
        axes.set_ylabel("goodput (%)" if place == 0 else "")
    text = Text(
        finding(panel), style.subtitle(panel, "mean, and goodput of every flow"), _caption(panel, beside)
    )
    return sheet.finish(text, _legend(here), style.published_key(beside, panel))


def _bars(axes: Axes, panel: Panel, here: Sequence[str], beside: Sequence[Level]) -> None:
    width = 0.8 / len(here)
    for place, engine in enumerate(here):
        for x, count in enumerate(panel.subflows):
            height = mean_pct(panel, engine, count)
            if height is not None:
                axes.bar(
                    x + (place - (len(here) - 1) / 2) * width, height, 0.92 * width, color=ENGINES[engine][1]
                )
    for level in beside:
        x = panel.subflows.index(level.subflows)
        axes.hlines(
            level.value, x - 0.46, x + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
    style.percent_axis(axes, 100.0)
    axes.set_xticks(range(len(panel.subflows)), ["TCP" if n == 1 else str(n) for n in panel.subflows])
    axes.set_xlabel("TCP, and MPTCP by its number of subflows")
    axes.set_ylabel("mean goodput\n(% of optimal)")


def _ranks(axes: Axes, panel: Panel, here: Sequence[str], count: int) -> None:
    """Curves averaged rank by rank over the seeds."""
    for place, engine in enumerate(here):
        curve = mean_ranks(point.flows_pct for point in _of(panel, engine, count))
        if curve:
            axes.plot(
                range(1, len(curve) + 1), curve, color=_RANK_COLOURS[engine], lw=1.5, zorder=3 + place,
                ls=("-", (0, (5, 1.5)), (0, (1.5, 1.5)))[place],
            )  # fmt: skip
    axes.set_ylim(0, 106)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_xticks([1, panel.hosts])
    axes.set_xlabel("rank of flow")
    axes.set_title(style.transport(count))


def _legend(here: Sequence[str]) -> list[Artist]:
    """A bar's shade with its curve's colour as the rim."""
    return [
        Patch(facecolor=ENGINES[e][1], edgecolor=_RANK_COLOURS[e], linewidth=2, label=ENGINES[e][0])
        for e in here
    ]


def _caption(panel: Panel, beside: Sequence[Level]) -> list[str]:
    off = difference(panel, MAX_MIN)
    packets = any(point.engine == SIMULATOR for point in panel.points)
    return [
        style.parameters(panel),
        style.definition(panel),
        *([f"Max-min less packets: {off[0]:+.1f} points on average, {off[1]:+.1f} at most."] if off else []),
        *([] if packets else ["No packet-level points here."]),
        "Bars are grey and black; curves of every flow in the colours of their rims.",
        *style.sources(beside),
    ]
