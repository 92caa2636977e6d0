"""Completion of the last flow of an incast by the agent's reporting interval, over that without an agent."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from analysis.completion import tail_ms
from ccp.names import is_agents
from model import transports
from plots.data import TRANSPORT, Inputs, Panel, Point, panels
from plots.shared import saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "by_report_interval"
APART = (*TRANSPORT, "agent", "workload", "link.rate_mbps")
"""Fields in which points of one chart may differ."""
_HEIGHT_IN = 2.0
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_MARKERS = "osD^"


@dataclass(frozen=True)
class Curve:
    """One workload at one rate: the ratio of each seed by interval in us."""

    rate_mbps: float
    packets: int
    cc: str
    ratios: dict[int, tuple[float, ...]]


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in transport, agent, workload and rate; see
    `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=APART)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def curves(points: Sequence[Point]) -> list[Curve]:
    """Return the curves by rate and size; a seed counts where all flows completed, with the agent and
    without."""
    tails = {
        (p.rate_mbps, _packets(p), p.cc, p.spec.agent.report_us, p.seed): tail_ms(p.flows) for p in points
    }
    plain = {
        (rate, size, seed): tail for (rate, size, cc, _, seed), tail in tails.items() if not is_agents(cc)
    }
    found: dict[tuple[float, int, str], dict[int, list[float]]] = {}
    for (rate, size, cc, us, seed), tail in sorted(tails.items(), key=lambda pair: pair[0]):
        beside = plain.get((rate, size, seed))
        if is_agents(cc) and us and tail is not None and beside:
            found.setdefault((rate, size, cc), {}).setdefault(us, []).append(tail / beside)
    return [Curve(*key, {us: tuple(of) for us, of in by_us.items()}) for key, by_us in found.items()]


def _packets(point: Point) -> int:
    return int(point.spec.workload.params.get("packets", 100))


def _chart(panel: Panel) -> Figure | None:
    of = [curve for curve in curves(panel.points) if len(curve.ratios) > 1]
    rates = sorted({curve.rate_mbps for curve in of})
    if not rates:
        return None
    sheet = Sheet((_HEIGHT_IN, len(rates)))
    sizes = sorted({curve.packets for curve in of})
    for axes, rate in zip(sheet.axes[0], rates, strict=True):
        axes.axhline(1.0, color="0.6", lw=0.8)
        for curve in (each for each in of if each.rate_mbps == rate):
            _curve(axes, curve, sizes.index(curve.packets))
        axes.set_title(f"{rate / 1000:g} Gb/s", fontsize=8, loc="left")
        axes.tick_params(labelsize=6)
    top = max(axes.dataLim.y1 for axes in sheet.axes[0])
    for axes in sheet.axes[0]:
        axes.set_ylim(0, 1.1 * max(top, 1.5))
    sheet.axes[0][0].set_ylabel("last completion, x Reno's")
    sheet.axes[0][len(rates) // 2].set_xlabel("time between reports (us)")
    caption = Caption(
        [*style.unlike(panel.points), f"round trip {4 * panel.spec.link.delay_us:g} us",
         style.queue_limit(panel.spec.link.queue_pkts),
         f"agent answers after {_answer_us(panel):g} us"],
        [*style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )  # fmt: skip
    words = Text(finding(of), f"Incast of {panel.hosts - 1} flows to one host, {_names(of)}", caption)
    return sheet.finish(words, [_key(number, size) for number, size in enumerate(sizes)])


def _answer_us(panel: Panel) -> float:
    return max(point.spec.agent.delay_us for point in panel.points if is_agents(point.cc))


def _names(of: Sequence[Curve]) -> str:
    return ", ".join(sorted({transports.title(curve.cc) for curve in of}))


def _curve(axes: Axes, curve: Curve, number: int) -> None:
    at = sorted(curve.ratios)
    means = [statistics.fmean(curve.ratios[us]) for us in at]
    half_widths = [interval_pct(curve.ratios[us]) or 0.0 for us in at]
    axes.errorbar(
        at,
        means,
        yerr=half_widths,
        color=_COLOURS[number % 4],
        marker=_MARKERS[number % 4],
        ms=4,
        lw=1.4,
        capsize=2,
    )
    axes.set_xscale("log")
    axes.set_xticks(at)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _key(number: int, packets: int) -> Line2D:
    look = {"color": _COLOURS[number % 4], "marker": _MARKERS[number % 4]}
    return Line2D([], [], lw=1.4, ms=4, label=f"{packets} packets", **look)  # type: ignore[arg-type]


def finding(of: Sequence[Curve]) -> str:
    """Return the title: by how much the last completion differs from that without an agent."""
    means = [statistics.fmean(ratios) for curve in of for ratios in curve.ratios.values()]
    return f"The last flow takes {min(means):.2f} to {max(means):.2f} times as long as without an agent"
