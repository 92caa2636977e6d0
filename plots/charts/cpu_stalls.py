"""Effect of CPU stalls on goodput, the slowest flow, fairness, round-trip and completion times, against
lateness as a share of a full queue's time, beside the tolerance of each.

Every change is between a point with stalls and the quiet one of the same setting and seed
(analysis/noise_effects.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import quantities
from analysis.noise_effects import (
    TOLERANCES,
    Change,
    binned,
    changes,
    delay_share,
    largest_share,
    metrics,
    queue_share,
)
from engines.registry import SIMULATED_HOSTS
from model.reasons import COMPLETION, GOODPUT, JAIN, RTT, SLOWEST
from model.spec import ELASTIC, NOWHERE, OF_ALL, OF_FABRIC, OF_HOSTS, RunSpec
from plots.data import Inputs, Panel, Point, interval_pct
from plots.shared import saving, style
from plots.shared.naming import setting_order
from plots.shared.sheet import Caption, Sheet, Text

_HEIGHT_IN = 1.25
_COLOURS = {OF_FABRIC: "#0072b2", OF_HOSTS: "#d55e00", OF_ALL: "#009e73"}
_PLACES = {OF_FABRIC: "the fabric's CPU", OF_HOSTS: "the hosts' CPUs", OF_ALL: "all CPUs"}
_LABELS = {
    GOODPUT: "mean goodput\n(points)",
    SLOWEST: "slowest flow\n(points)",
    JAIN: quantities.JAIN.axis,
    RTT: "round-trip time\n(%)",
    COMPLETION: "completion time\n(%)",
}
_APART = 1.09
"""Factor between the marks of one bin."""


@dataclass(frozen=True, order=True)
class StallSeries:
    """Points that are drawn alike: their transport, where CPUs stall, and by which clock."""

    subflows: int
    where: str
    clock: str

    @property
    def marker(self) -> str:
        return "s" if self.subflows == 1 else "o"

    def face(self, several_clocks: bool) -> str:
        """Return the face colour: hollow for the strict clock, where both clocks are shown."""
        return "white" if several_clocks and self.clock != ELASTIC else _COLOURS[self.where]


Found = Mapping[StallSeries, Sequence[Change]]


def draw_noise(inputs: Inputs) -> list[Path]:
    """Draw one chart per engine, network and workload; see `registry.Chart.draw`."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in inputs.points:
        if not point.is_baseline and not point.failed:
            groups.setdefault(setting_order(point.spec)[:5], []).append(point)
    of = [_panel(group) for _, group in sorted(groups.items()) if effects(group)]
    return saving.draw_panels("noise", inputs, _noise_chart, of)


def effects(
    points: Iterable[Point], share_of: Callable[[RunSpec], float] = queue_share
) -> dict[StallSeries, list[Change]]:
    """Return all changes of good points by series. Points without a quiet counterpart, or with queues without
    a limit, are left out."""
    good = [point for point in points if not point.suspect and point.baseline_mbps]
    quiet = {_pair(point): _metrics(point) for point in good if point.spec.noise.where == NOWHERE}
    found: dict[StallSeries, list[Change]] = {}
    for point in good:
        beside = quiet.get(_pair(point))
        if point.spec.noise.where == NOWHERE or beside is None or share_of(point.spec) <= 0:
            continue
        network = point.spec.key(ignoring=("seed", "noise"))
        setting = f"{network} {delay_share(point.spec):.3g} {point.spec.noise.where}"
        pair = f"{network} {point.seed}"
        for name, change in changes(beside, _metrics(point)).items():
            series = StallSeries(point.subflows, point.spec.noise.where, point.spec.clock)
            found.setdefault(series, []).append(Change(name, share_of(point.spec), change, setting, pair))
    return found


def _pair(point: Point) -> str:
    return point.spec.key(ignoring=("noise",))


def _metrics(point: Point) -> dict[str, float]:
    return metrics(point.flows, point.baseline_mbps or 1.0)


def half(values: Sequence[float]) -> float:
    """Return half the 95 % interval of the mean; nan for fewer than six values."""
    found = interval_pct(values)
    return float("nan") if found is None else found


def _panel(group: Sequence[Point]) -> Panel:
    return Panel(group[0].spec, tuple(sorted({p.subflows for p in group})), tuple(group))


def finding(found: Found) -> str:
    """Return the title: how late packets may be before the first metric leaves its tolerance."""
    everything = [change for series in found.values() for change in series]
    name = COMPLETION if all(change.metric == COMPLETION for change in everything) else GOODPUT
    of = [change for change in everything if change.metric == name]
    share = largest_share(binned(of, half), TOLERANCES[name].most)
    most = f"{TOLERANCES[name].most:g} {'%' if TOLERANCES[name].relative else 'points'}"
    words = "the completion time" if name == COMPLETION else "mean goodput"
    if not share:
        return f"No lateness was shown to leave {words} within {most}"
    return f"Late by up to {share:.2g} of a queue's time, {words} stays within {most}"


def _noise_chart(panel: Panel) -> Figure:
    found = effects(panel.points)
    names = [n for n in TOLERANCES if any(c.metric == n for of in found.values() for c in of)]
    rows = [names[i : i + 2] for i in range(0, len(names), 2)]
    sheet = Sheet(*((_HEIGHT_IN, len(row)) for row in rows))
    several = len({series.clock for series in found}) > 1
    for axes_row, row in zip(sheet.axes, rows, strict=True):
        for axes, name in zip(axes_row, row, strict=True):
            _metric(axes, name, found, several)
    for axes in sheet.axes[-1]:
        axes.set_xlabel("lateness / queue time")
    text = Text(finding(found), style.network(panel.points[0].spec), _caption(panel, several))
    return sheet.finish(text, _key(found), _key_of_marks(panel, several))


def _metric(axes: Axes, name: str, found: Found, several: bool) -> None:
    tolerance = TOLERANCES[name].most
    axes.axhspan(-tolerance, tolerance, color=style.GRID, alpha=0.6, lw=0, zorder=0)
    axes.axhline(0, color=style.FAINT, lw=0.8, zorder=1)
    for i, (series, of) in enumerate(sorted(found.items())):
        bins = binned([change for change in of if change.metric == name], half)
        if not bins:
            continue
        apart = _APART ** (i - (len(found) - 1) / 2)
        axes.errorbar(
            [each.share * apart for each in bins],
            [each.mean for each in bins],
            yerr=[0.0 if each.half != each.half else each.half for each in bins],
            fmt=series.marker,
            ms=3.4,
            lw=0.9,
            capsize=1.5,
            color=_COLOURS[series.where],
            markerfacecolor=series.face(several),
            zorder=3,
        )
    style.plain_log(axes.xaxis)
    axes.set_ylabel(_LABELS[name], fontsize=8.5)


def _key(found: Found) -> list[Line2D]:
    places = [where for where in _PLACES if any(series.where == where for series in found)]
    return [
        Line2D([], [], color=_COLOURS[where], lw=2.4, label=f"stalls of {_PLACES[where]}") for where in places
    ]


def _key_of_marks(panel: Panel, several: bool) -> list[Line2D]:
    marks = [
        Line2D([], [], color=style.INK, marker="s" if n == 1 else "o", ms=4, lw=0, label=style.transport(n))
        for n in panel.subflows
    ]
    hollow = Line2D(
        [], [], color=style.INK, marker="o", ms=4, markerfacecolor="white", lw=0, label="strict clock"
    )
    return [*marks, *([hollow] if several else [])]


def _caption(panel: Panel, several: bool) -> Caption:
    rates = "/".join(f"{rate:g}" for rate in sorted({p.rate_mbps for p in panel.points}))
    queues = "/".join(f"{pkts}" for pkts in sorted({p.spec.link.queue_pkts for p in panel.points}))
    hosts = "simulated" if panel.spec.engine in SIMULATED_HOSTS else "real hosts"
    return Caption(
        [
            *style.unlike(panel.points),
            f"links of {rates} Mb/s",
            f"queues of {queues} packets",
            f"n = {len(panel.seeds)}",
            hosts,
        ],
        [
            *style.doubts(panel.points),
            "Grey: the tolerance. Whiskers: 95 % interval.",
            *(["Filled: the fabric's clock stands still during stalls."] if several else []),
        ],
    )
