"""Goodput against the probability of loss, on log axes: the square-root law, and a model with timeouts."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import laws
from plots.data import Level, Panel, PointSummary, Setting, file_stems, panels
from plots.shared import saving, style
from plots.shared.sheet import Sheet, Text

CHART = "loss_law"
_HEIGHT_IN = 3.3
_MODEL = (0, (1, 1.2))


@dataclass(frozen=True)
class Rate:
    """One loss rate: what share of the packets was lost, and packets a round trip of every flow."""

    point: PointSummary
    loss: float
    pkts: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.pkts)


def draw(
    points: Iterable[PointSummary],
    out: Path,
    *,
    expected: Sequence[int] = (),
    levels: Sequence[Level] = (),  # noqa: ARG001 - the laws are drawn at every loss rate, not only where judged
) -> list[Path]:
    """One chart a setting, loss rates aside, as `registry.Chart.draw`."""
    groups: dict[Setting, list[Panel]] = {}
    for panel in panels(points, expected):
        if any(rate_of(point) for point in panel.best(1)):
            setting = dataclasses.replace(panel.setting, variant=panel.points[0].without_loss)
            groups.setdefault(setting, []).append(panel)
    stems = file_stems(CHART, [dataclasses.replace(of[0], setting=s) for s, of in groups.items()])
    paths: list[Path] = []
    for (setting, of), stem in zip(groups.items(), stems, strict=True):
        with style.look():
            paths += saving.save(_chart(setting, of), out, stem)
    return paths


def rate_of(point: PointSummary) -> Rate | None:
    """None where nothing was lost, or round trips were not sampled."""
    loss = laws.lost_share(point.ports)
    pkts = tuple(pkts for flow in point.flows if (pkts := laws.pkts_per_round(flow)) > 0)
    return Rate(point, loss, pkts) if loss > 0 and pkts else None


def finding(rates: Sequence[Rate]) -> str:
    """The title: the constant where losses are rare."""
    rare = [rate.mean * rate.loss**0.5 for rate in rates if rate.loss < 1.2 * laws.TIMEOUTS_FROM]
    if not rare:
        return "Packets a round trip by the probability of loss"
    return f"With p up to 1 %, {statistics.fmean(rare):.2f} / \N{SQUARE ROOT}p packets a round trip"


def _chart(setting: Setting, of: Sequence[Panel]) -> Figure:
    rates = sorted(
        filter(None, (rate_of(p) for panel in of for p in panel.best(1))), key=lambda rate: rate.loss
    )
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    for rate in rates:
        colour = style.TCP_COLOUR
        face = "white" if style.suspect(rate.point) else colour
        axes.plot([rate.loss] * len(rate.pkts), rate.pkts, "o", color=colour, ms=2.2, alpha=0.45)
        axes.plot([rate.loss], [rate.mean], "s", color=colour, markerfacecolor=face, ms=6.5, zorder=5)
    legend = _laws(axes, rates)
    style.log_axes(axes)
    axes.set_xlabel("share of packets lost, p")
    axes.set_ylabel("packets a round trip")
    subtitle = f"{style.network(setting)}: TCP flows apart from each other, losses at random"
    return sheet.finish(Text(finding(rates), subtitle, _caption(setting, of, rates)), legend)


def _laws(axes: Axes, rates: Sequence[Rate]) -> list[Line2D]:
    """Mathis et al.'s line and Padhye et al.'s curve; their legend."""
    losses = np.geomspace(rates[0].loss / 1.5, min(0.5, rates[-1].loss * 1.5), 100)
    rtt_ms = statistics.fmean(flow.srtt_ms_mean for rate in rates for flow in rate.point.flows)
    rto_rtts = laws.MIN_RTO_MS / rtt_ms
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
        axes.plot(losses, values, color="black", ls=dashes, lw=1.3, zorder=4, label=f"theory: {told}")[0]
        for values, dashes, told in curves
    ]


def _caption(setting: Setting, of: Sequence[Panel], rates: Sequence[Rate]) -> list[str]:
    shown = dataclasses.replace(of[0], setting=setting, points=tuple(p for panel in of for p in panel.points))
    return [
        style.parameters(shown),
        "Goodput times the mean round-trip time, over 1448 bytes; p is the share of data packets lost. "
        f"Dots: one flow each, n = {max(len(rate.pkts) for rate in rates)} a rate; marker: their mean. "
        "The constant is of senders that count packets and not acknowledgements (RFC 3465): delayed ones do "
        "not slow them.",
        *style.doubts([rate.point for rate in rates]),
    ]
