"""Goodput of one flow alone at several link rates, beside the computed value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis import laws
from plots.data import Inputs, Panel, Point, panels, together
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "fill"
_HEIGHT_IN, _RESIDUAL_IN = 2.6, 0.9
_COMPARED = ("link.rate_mbps", "seconds")


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, link rates aside; see `registry.Chart.draw`."""
    measured = (panel for panel in panels(inputs.points, inputs.expected) if panel.best(1))
    of = [(group[0].spec.neutral(*_COMPARED), group) for group in together(measured, *_COMPARED)]
    return saving.draw_each(CHART, of, inputs.out, _chart)


def missed_bytes(point: Point) -> float:
    """Return the bytes that the link could carry and the point's slowest flow did not receive."""
    room = laws.fill_bytes(point.rate_mbps, point.spec.seconds)
    return max((room - flow.bytes_received for flow in point.flows), key=abs, default=room)


def finding(points: Sequence[Point]) -> str:
    """Return the title: in bytes where they are few, else in percent."""
    worst = max(points, key=lambda point: abs(missed_bytes(point)))
    missed = missed_bytes(worst)
    rates = f"at {len(points)} link rates" if len(points) > 1 else f"at {worst.rate_mbps:g} Mb/s"
    if abs(missed) < laws.SEGMENT_BYTES:
        return f"A flow alone receives what its link can carry, within {abs(missed):.0f} bytes, {rates}"
    share = 100 - 100 * missed / laws.fill_bytes(worst.rate_mbps, worst.spec.seconds)
    return f"A flow alone reaches at least {share:.2f} % of the capacity of its link, {rates}"


def _chart(of: Sequence[Panel]) -> Figure:
    points = [panel.best(1)[0] for panel in of]
    sheet = Sheet((_HEIGHT_IN, 1), (_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    for point in points:
        _mark(axes, point)
    rates = [point.rate_mbps for point in points]
    ends = (min(rates) / 2, max(rates) * 2)
    axes.plot(
        ends, [laws.fill_bytes(rate, 8e-6) for rate in ends], color="black", ls=style.PUBLISHED_DASH, lw=1.2
    )
    style.log_axes(axes)
    axes.set_xlim(ends[0], ends[1] * 8)
    axes.set_ylabel(axis_labels.GOODPUT_MBPS)
    _residuals(below, points)
    below.set_xlim(axes.get_xlim())
    theory = Line2D(
        [], [], color="black", ls=style.PUBLISHED_DASH, label="1448 payload bytes in a frame of 1514"
    )
    words = Text(
        finding(points),
        f"{style.network(of[0].spec)}: one TCP flow, payload received",
        _caption(of, points),
    )
    return sheet.finish(words, [theory])


def _residuals(axes: Axes, points: Sequence[Point]) -> None:
    """Draw what each flow misses of the computed bytes, in segments."""
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    missed = [-missed_bytes(point) / laws.SEGMENT_BYTES for point in points]
    for point, segments in zip(points, missed, strict=True):
        face = "white" if point.suspect else style.TCP_COLOUR
        axes.plot(
            point.rate_mbps, segments, "s", color=style.TCP_COLOUR, markerfacecolor=face, ms=6, zorder=4
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    reach = 1.3 * max(1.0, *map(abs, missed))
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("link rate (Mb/s)")
    axes.set_ylabel("received minus\ncomputed (segments)", fontsize=8.5)


def _mark(axes: Axes, point: Point) -> None:
    goodput = sum(flow.goodput_mbps for flow in point.flows)
    received = sum(flow.bytes_received for flow in point.flows)
    face = "white" if point.suspect else style.TCP_COLOUR
    axes.plot([point.rate_mbps], [goodput], "s", color=style.TCP_COLOUR, markerfacecolor=face, ms=6, zorder=4)
    missed = round(missed_bytes(point))
    label = f"{received:,} bytes\n{abs(missed):,} {'more than computed' if missed < 0 else 'missing'}"
    axes.annotate(
        label.replace(",", "\N{THIN SPACE}"),
        (point.rate_mbps, goodput),
        (6, -4),
        textcoords="offset points",
        va="top",
        fontsize=7.5,
    )


def _caption(of: Sequence[Panel], points: Sequence[Point]) -> Caption:
    return Caption(style.parameters(*of), style.doubts(points))
