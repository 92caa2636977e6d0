"""Goodput against the probability of loss, on log axes: the square-root law, and a model with timeouts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis import laws
from plots.data import Inputs, Panel, Point, common, panels, together
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "loss_law"
_HEIGHT_IN, _RESIDUAL_IN = 2.8, 1.1
_MODEL = (0, (1, 1.2))


@dataclass(frozen=True)
class Rate:
    """One loss rate: the share of packets lost, and packets per round trip of every flow."""

    point: Point
    loss: float
    pkts: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.pkts)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, loss rates aside; see `registry.Chart.draw`."""
    measured = (p for p in panels(inputs.points, inputs.expected) if any(map(rate_of, p.best(1))))
    of = [(group[0].spec.neutral("link.loss"), group) for group in together(measured, "link.loss")]
    return saving.draw_each(CHART, of, inputs.out, _chart)


def rate_of(point: Point) -> Rate | None:
    """Return None where nothing was lost, or round trips were not sampled."""
    loss = laws.lost_share(point.ports)
    pkts = tuple(pkts for flow in point.flows if (pkts := laws.pkts_per_round(flow)) > 0)
    return Rate(point, loss, pkts) if loss > 0 and pkts else None


def finding(rates: Sequence[Rate]) -> str:
    """Return the title: the constant where losses are rare."""
    rare = [rate.mean * rate.loss**0.5 for rate in rates if rate.loss < 1.2 * laws.TIMEOUTS_FROM]
    if not rare:
        return "Packets per round trip by the probability of loss"
    return f"With p up to 1 %, {statistics.fmean(rare):.2f} / \N{SQUARE ROOT}p packets per round trip"


def _chart(of: Sequence[Panel]) -> Figure:
    rates = sorted(
        filter(None, (rate_of(p) for panel in of for p in panel.best(1))), key=lambda rate: rate.loss
    )
    sheet = Sheet((_HEIGHT_IN, 1), (_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    for rate in rates:
        colour = style.TCP_COLOUR
        face = "white" if rate.point.suspect else colour
        axes.plot([rate.loss] * len(rate.pkts), rate.pkts, "o", color=colour, ms=2.2, alpha=0.45)
        axes.plot([rate.loss], [rate.mean], "s", color=colour, markerfacecolor=face, ms=6.5, zorder=5)
    legend = _laws(axes, rates)
    style.log_axes(axes)
    axes.set_ylabel("packets per round trip")
    _residuals(below, rates)
    below.set_xlim(axes.get_xlim())
    subtitle = f"{style.network(of[0].spec)}: separate TCP flows, random losses"
    return sheet.finish(Text(finding(rates), subtitle, _caption(of, rates)), legend)


def _residuals(axes: Axes, rates: Sequence[Rate]) -> None:
    """Draw how far each mean is from the square-root law and from the model with timeouts, in percent."""
    rto_rtts = _rto_rtts(rates)
    for rate in rates:
        for law, marker in ((laws.mathis_pkts(rate.loss), "s"), (laws.padhye_pkts(rate.loss, rto_rtts), "o")):
            face = style.TCP_COLOUR if marker == "s" and not rate.point.suspect else "white"
            off_pct = 100 * (rate.mean / law - 1)
            axes.plot(
                rate.loss, off_pct, marker, color=style.TCP_COLOUR, markerfacecolor=face, ms=5, zorder=4
            )
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("share of packets lost, p")
    axes.set_ylabel("off theory (%)\nsquare: root law\nring: with timeouts", fontsize=8)


def _rto_rtts(rates: Sequence[Rate]) -> float:
    """Return the minimum RTO in mean round trips."""
    rtt_ms = statistics.fmean(flow.srtt_ms_mean for rate in rates for flow in rate.point.flows)
    return laws.MIN_RTO_MS / rtt_ms


def _laws(axes: Axes, rates: Sequence[Rate]) -> list[Line2D]:
    """Draw the line of Mathis et al. and the curve of Padhye et al.; return their legend."""
    losses = np.geomspace(rates[0].loss / 1.5, min(0.5, rates[-1].loss * 1.5), 100)
    rto_rtts = _rto_rtts(rates)
    root, model = (
        "\N{SQUARE ROOT}",
        f"with timeouts of {rto_rtts:.1f} round trips (Padhye et al., SIGCOMM 1998)",
    )
    curves = (
        (
            [laws.mathis_pkts(p) for p in losses],
            style.PUBLISHED_DASH,
            f"{root}(3/2) / {root}p (Mathis et al., CCR 1997)",
        ),
        ([laws.padhye_pkts(p, rto_rtts) for p in losses], _MODEL, model),
    )
    return [
        axes.plot(losses, values, color="black", ls=dashes, lw=1.3, zorder=4, label=f"theory: {name}")[0]
        for values, dashes, name in curves
    ]


def _caption(of: Sequence[Panel], rates: Sequence[Rate]) -> Caption:
    flows = max(len(rate.pkts) for rate in rates)
    return Caption(
        style.parameters(common(of, "link.loss")),
        [
            *style.doubts([rate.point for rate in rates]),
            f"Dots: one flow each, n = {flows} per rate; marker: their mean.",
        ],
    )
