"""How long flows take from their start to their demand: the share of flows that have it, by scheme."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from controllers.hedera.demands import natural_demands
from controllers.responsive.settings import NEW_WEIGHT, OLD_WEIGHT
from model.result import FlowRow, Status, Table
from plots.charts.on_demand.demand_over_time import LOOKS, looks
from plots.charts.on_demand.trade_off import APART, RESPONSIVE, kind_of, name
from plots.data import Inputs, Panel, Point, panels
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "time_to_demand"
SHARE, CHECKS = 0.85, 3
"""A flow has its demand when its smoothed rate is this share of it, at this many samples in a row."""
_HEIGHT_IN = 2.6
_FIRST_MS = 2.0
Series = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """A scheme with the time of each of its flows in s, sorted; infinite for a flow that never reached it."""

    name: str
    kind: str
    reached_s: Series

    @property
    def median_s(self) -> float:
        return float(np.quantile(self.reached_s, 0.5, method="inverted_cdf"))


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=APART)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def demands_mbps(flows: Sequence[FlowRow], rate_mbps: float) -> Series:
    """Return the demand of each flow as Hedera estimates it, between hosts with one link of this rate."""
    number = {host: i for i, host in enumerate({each: None for row in flows for each in (row.src, row.dst)})}
    rates = np.ones(len(number))
    sources, receivers = (
        np.array([number[getattr(row, end)] for row in flows], np.int64) for end in ("src", "dst")
    )
    return rate_mbps * natural_demands(sources, receivers, rates, rates)


def reached_s(sockets: Table, demand_mbps: Series) -> Series:
    """Return when each flow first has SHARE of its demand for CHECKS samples, in s from the first sample.

    Rates are smoothed as a monitor does it; infinity means never. No subflow may be closed meanwhile.
    """
    times, position = np.unique(sockets["t_s"].astype(np.float64), return_inverse=True)
    octets = np.zeros((len(times), len(demand_mbps)))
    np.add.at(octets, (position, sockets["flow"]), sockets["bytes_acked"].astype(np.float64))
    rates = 8e-6 * np.diff(octets, axis=0) / np.diff(times)[:, None]
    smoothed, row = np.empty_like(rates), np.zeros(len(demand_mbps))
    for i, rate in enumerate(rates):
        smoothed[i] = row = OLD_WEIGHT * row + NEW_WEIGHT * rate
    high = smoothed >= SHARE * demand_mbps
    steady = np.logical_and.reduce([high[n : len(high) - CHECKS + 1 + n] for n in range(CHECKS)])
    first = times[1:][np.argmax(steady, axis=0)] - times[0]
    return np.where(steady.any(axis=0), first, np.inf)


def curves(panel: Panel) -> list[Curve]:
    """Return a curve for each scheme with samples; suspect points count where no seed is good."""
    schemes: dict[str, list[Point]] = {}
    for point in panel.points:
        schemes.setdefault(name(point), []).append(point)
    found = []
    for called, of in sorted(schemes.items()):
        good = [point for point in of if point.status is Status.OK] or of
        tables = [(point, point.read_table("sockets")) for point in good]
        each = [reached_s(t, demands_mbps(p.flows, p.rate_mbps)) for p, t in tables if t and p.flows]
        if each:
            found.append(Curve(called, kind_of(good[0]), np.sort(np.concatenate(each))))
    return found


def finding(of: Sequence[Curve]) -> str:
    """Return the title: the median of the fastest scheme on demand, and of the fastest of the others."""
    ours, others = ([curve for curve in of if (curve.kind == RESPONSIVE) is on] for on in (True, False))
    parts = []
    for some, words in ((ours, "on demand"), (others, "")):
        if some:
            first = min(some, key=lambda curve: curve.median_s)
            parts.append(f"{_words(first.median_s)} {words or f'with {first.name}'}")
    return f"Half of the flows have {100 * SHARE:.0f} % of their demand after " + ", ".join(parts)


def _words(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if np.isfinite(seconds) else "more than the run"


def _chart(panel: Panel) -> Figure | None:
    of = curves(panel)
    if not of:
        return None
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    end_ms = 1000 * (panel.spec.warmup_s + panel.spec.seconds)
    handles: list[Artist] = []
    for curve, colour in looks(of):
        x = 1000 * curve.reached_s[np.isfinite(curve.reached_s)]
        share = 100 * np.arange(1, len(x) + 1) / len(curve.reached_s)
        line = LOOKS[curve.kind][1]
        axes.plot(
            [*x, end_ms],
            [*share, *share[-1:]] or [0.0],
            color=colour,
            ls=line,
            lw=1.4,
            drawstyle="steps-post",
        )
        handles.append(Line2D([], [], color=colour, ls=line, lw=1.6, label=curve.name))
    axes.set(xscale="log", xlim=(_FIRST_MS, end_ms), ylim=(0, 100))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("ms from the flow's start")
    axes.set_ylabel(f"flows at {100 * SHARE:.0f} % of their demand (%)")
    subtitle = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    return sheet.finish(Text(finding(of), subtitle, _caption(panel)), handles)


def _caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    note = f"All flows of {len(panel.seeds)} seeds; reached: {CHECKS} samples in a row."
    return Caption(style.parameters(bare, congestion=""), [note, *style.doubts(panel.points)])
