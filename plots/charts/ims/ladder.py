"""The published steps of load and scaling: calls completed, setup times, and receive buffers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.quantities import (
    CALLS_COMPLETED_PER_S,
    CALLS_LOST_PCT,
    CALLS_OFFERED_PER_S,
    PCSCF_FILL_PCT,
    SCSCF_FILL_PCT,
    SETUP_MS_P50,
    SETUP_MS_P95,
)
from plots.data import Inputs, Point
from plots.shared import axis_labels, calls, saving, style
from plots.shared.calls import Group
from plots.shared.sheet import Sheet, Text

CHART = "ladder"
_HEIGHTS_IN = (1.9, 1.6, 1.5)
_BAR = 0.36
LOST_PCT = 5


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per scale; see `registry.Chart.draw`."""
    groups = calls.grouped(inputs.points, calls.of_scale)
    return saving.draw_each(
        CHART, [(group.points[0].spec, group) for group in groups], inputs.out, _chart, calls.named
    )


def steps(group: Group) -> list[tuple[str, list[Point]]]:
    """Return the label and the points of each step: by calls, then by instances."""
    found: dict[tuple[int, int, int], list[Point]] = {}
    for point in group.points:
        ims = calls.ims_of(point)
        found.setdefault((ims.calls, ims.pcscf + ims.scscf, ims.pcscf), []).append(point)
    return [(f"{key[0]}\nP{key[2]} S{key[1] - key[2]}", points) for key, points in sorted(found.items())]


def finding(group: Group) -> str:
    """Return the title: at how many of the steps calls are lost, beyond those that have not ended yet."""
    lost = [label for label, points in steps(group) if _lost_pct(points) >= LOST_PCT]
    if not lost:
        return "All steps are carried"
    return f"{len(lost)} of {len(steps(group))} steps lose {LOST_PCT} % of calls or more"


def _lost_pct(points: Sequence[Point]) -> float:
    return statistics.fmean(calls.values(calls.good(points), CALLS_LOST_PCT))


def _chart(group: Group) -> Figure | None:
    of = steps(group)
    sheet = Sheet(*((height, 1) for height in _HEIGHTS_IN))
    rate, setup, queue = (row[0] for row in sheet.axes)
    engines = sorted({calls.is_real(point) for point in group.points})
    for place, (_, points) in enumerate(of):
        for number, real in enumerate(engines):
            ours = calls.good([point for point in points if calls.is_real(point) is real])
            if ours:
                _step(rate, setup, queue, place + (number - (len(engines) - 1) / 2) * 2.2 * _BAR / 2, ours)
    for axes in (rate, setup, queue):
        axes.set_xticks(range(len(of)), [label if axes is queue else "" for label, _ in of])
        axes.set_xlim(-0.6, len(of) - 0.4)
    rate.set_ylabel(axis_labels.CALLS)
    setup.set_ylabel("setup time (ms)")
    calls.log_ms(setup)
    queue.set_ylabel("buffer (% full)")
    queue.set_ylim(0, 105)
    queue.set_xlabel("calls/s offered, instances")
    network = group.points[0].spec.topology.kind.replace("_", " ")
    subtitle = f"{network}, {len(of)} steps from idle{calls.scale_words(group)}"
    return sheet.finish(
        Text(finding(group), subtitle, calls.caption(group)), _legend(engines, group.seeds > 1)
    )


def _step(rate: Axes, setup: Axes, queue: Axes, x: float, points: list[Point]) -> None:
    """Draw one step of one engine: real ones are hatched where they are suspect."""
    mean = {
        quantity: statistics.fmean(found) if (found := calls.values(points, quantity)) else None
        for quantity in (
            CALLS_OFFERED_PER_S,
            CALLS_COMPLETED_PER_S,
            SETUP_MS_P50,
            SETUP_MS_P95,
            PCSCF_FILL_PCT,
            SCSCF_FILL_PCT,
        )
    }
    hatch = style.HATCH if all(point.suspect for point in points) else ""
    rate.bar(x, mean[CALLS_OFFERED_PER_S] or 0, _BAR, fill=False, ec=calls.OFFERED_COLOUR, lw=1)
    alpha = 0.55 if calls.is_real(points[0]) else 1.0
    rate.bar(
        x, mean[CALLS_COMPLETED_PER_S] or 0, _BAR, color=calls.CALLS_COLOUR, alpha=alpha, hatch=hatch,
        edgecolor="white",
    )  # fmt: skip
    _runs(rate, x, calls.values(points, CALLS_COMPLETED_PER_S))
    marker = "s" if calls.is_real(points[0]) else "o"
    if (median := mean[SETUP_MS_P50]) is not None and (p95 := mean[SETUP_MS_P95]) is not None:
        setup.plot([x, x], [median, p95], color=style.FAINT, lw=1.2)
        setup.plot(x, median, marker, color=calls.CALLS_COLOUR, ms=5)
        setup.plot(x, p95, "_", color=style.FAINT, ms=8)
    for fill, colour, side in (
        (PCSCF_FILL_PCT, calls.P_COLOUR, -_BAR / 4),
        (SCSCF_FILL_PCT, calls.S_COLOUR, _BAR / 4),
    ):
        queue.bar(x + side, mean[fill] or 0, _BAR / 2, color=colour, alpha=alpha, hatch=hatch)


def _runs(rate: Axes, x: float, completed: Sequence[float]) -> None:
    """Show the spread of the seeds as dots: there are often too few for an interval."""
    if len(completed) > 1:
        rate.plot([x] * len(completed), completed, ".", color=style.INK, ms=3, zorder=6)


def _legend(engines: Sequence[bool], several: bool) -> list[Artist]:
    handles: list[Artist] = [
        Patch(fill=False, ec=calls.OFFERED_COLOUR, label="offered"),
        Patch(color=calls.CALLS_COLOUR, label="completed"),
        Patch(color=calls.P_COLOUR, label="P-CSCF"),
        Patch(color=calls.S_COLOUR, label="S-CSCF"),
        Line2D([], [], color=style.FAINT, marker="_", label="median to 95th percentile"),
    ]
    if several:
        handles.append(Line2D([], [], color=style.INK, marker=".", ls="", ms=4, label="one run"))
    if len(engines) > 1:
        handles.append(Patch(color=calls.CALLS_COLOUR, alpha=0.55, label="right: real"))
    return handles
