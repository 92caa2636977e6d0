"""Goodput and drops against the delay of the agent, one curve per congestion control."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from analysis.quantities import DROPS
from ccp.names import is_agents
from model import transports
from model.spec import AgentSpec
from plots.data import TRANSPORT, Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "by_agent_delay"
_HEIGHT_IN = 1.8
AGENTS = "agent"
"""The field in which the points differ."""


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control and agent; see
    `registry.Chart.draw`."""
    of = panels(inputs.points, inputs.expected, (*TRANSPORT, AGENTS))
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def _goodput(point: Point) -> float:
    return sum(flow.goodput_mbps for flow in point.flows)


def _dropped(point: Point) -> float:
    """Return the segments dropped in each second of the window."""
    return (point.recorded(DROPS) or 0.0) / point.spec.seconds


def _chart(panel: Panel) -> Figure | None:
    usable = [point for point in panel.points if point.flows]
    if len({point.spec.agent for point in usable}) < 2:
        return None
    sheet = Sheet((_HEIGHT_IN, 1), (_HEIGHT_IN, 1))
    goodput, drops = sheet.axes[0][0], sheet.axes[1][0]
    names = sorted({point.cc for point in usable}, key=transports.rank)
    for axes, value in ((goodput, _goodput), (drops, _dropped)):
        for name in names:
            _curve(axes, [point for point in usable if point.cc == name], name, value)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(0, 1.08 * axes.dataLim.y1 or 1.0)
    goodput.set_ylabel(axis_labels.GOODPUT_MBPS)
    drops.set_ylabel("drops per second")
    drops.set_xlabel("delay of the agent (ms)")
    legend = [_key(name) for name in names]
    caption = Caption(style.parameters(panel, congestion=""), style.doubts(usable))
    words = Text("Goodput and drops by the delay of the agent", style.subtitle(panel, "all flows"), caption)
    return sheet.finish(words, legend)


def _key(name: str) -> Line2D:
    look = transports.look(name)
    marker, line = (look.marker, "-") if is_agents(name) else ("", ":")
    return Line2D([], [], color=look.colour, marker=marker, ls=line, ms=4.5, label=look.label)


def _curve(axes: Axes, points: Sequence[Point], name: str, value: Callable[[Point], float]) -> None:
    """Draw the mean over seeds at every delay; a control of the kernel has no agent and is a level."""
    look = transports.look(name)
    by_delay: dict[AgentSpec, list[float]] = {}
    for point in points:
        by_delay.setdefault(point.spec.agent, []).append(value(point))
    means = {agent.delay_us / 1000: statistics.fmean(of) for agent, of in by_delay.items()}
    if len(means) == 1:
        axes.axhline(next(iter(means.values())), color=look.colour, lw=1.2, ls=":")
        return
    at = sorted(means)
    axes.plot(at, [means[ms] for ms in at], color=look.colour, marker=look.marker, ms=4.5, lw=1.6)
