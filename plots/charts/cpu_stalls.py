"""Effect of CPU stalls on goodput, the slowest flow, fairness, round-trip and completion times, against
lateness as a share of a full queue's time, beside the tolerance of each.

Every change is between a point with stalls and the quiet one of the same setting and seed
(analysis/noise_effects.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
from harness.results.point_results import PointResult
from model.reasons import COMPLETION, GOODPUT, JAIN, RTT, SLOWEST
from model.spec import ELASTIC, NOWHERE, OF_ALL, OF_FABRIC, OF_HOSTS, RunSpec
from plots.data import Inputs, Panel, interval_pct
from plots.shared import kinds, saving, style
from plots.shared.kinds import Look, Mean
from plots.shared.naming import setting_order
from plots.shared.sheet import Sheet

_STALLS = {
    OF_FABRIC: Look("stalls of the fabric's CPU", "#0072b2", ""),
    OF_HOSTS: Look("stalls of the hosts' CPUs", "#d55e00", ""),
    OF_ALL: Look("stalls of all CPUs", "#009e73", ""),
}
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
    def look(self) -> Look:
        return Look("", _STALLS[self.where].colour, "s" if self.subflows == 1 else "o", "")


Found = Mapping[StallSeries, Sequence[Change]]


def effects(
    points: Iterable[PointResult], share_of: Callable[[RunSpec], float] = queue_share
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


def _pair(point: PointResult) -> str:
    return point.spec.key(ignoring=("noise",))


def _metrics(point: PointResult) -> dict[str, float]:
    return metrics(point.under_test, point.baseline_mbps or 1.0)


def half(values: Sequence[float]) -> float:
    """Return half the 95 % interval of the mean; nan for fewer than six values."""
    found = interval_pct(values)
    return float("nan") if found is None else found


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


def _groups(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    """Yield the points of each engine, network and workload with stalls."""
    usable = (point for point in inputs.points if not point.is_baseline and not point.failed)
    for _, of in sorted(kinds.grouped(usable, lambda point: setting_order(point.spec)[:5]).items()):
        if effects(of):
            yield of[0].spec, Panel(of[0].spec, tuple(sorted({p.subflows for p in of})), tuple(of))


@saving.per_group(_groups)
def noise(panel: Panel, _: Inputs) -> Figure:
    found = effects(panel.points)
    names = [n for n in TOLERANCES if any(c.metric == n for of in found.values() for c in of)]
    rows = [names[i : i + 2] for i in range(0, len(names), 2)]
    sheet = Sheet(*((1.25, len(row)) for row in rows))
    several = len({series.clock for series in found}) > 1
    for axes, name in zip(kinds.every(sheet.axes), names, strict=True):
        _metric(axes, name, found, several)
    for axes in sheet.axes[-1]:
        axes.set_xlabel("lateness / queue time")
    shown = {series.where for series in found}
    marks = [Look(style.transport(n), style.INK, "s" if n == 1 else "o", "") for n in panel.subflows]
    hollow = Look("strict clock", style.INK, dash="").key(size=4, hollow=True)
    rates = "/".join(f"{rate:g}" for rate in sorted({p.rate_mbps for p in panel.points}))
    queues = "/".join(f"{pkts}" for pkts in sorted({p.spec.link.queue_pkts for p in panel.points}))
    return sheet.finish(
        finding(found),
        style.network(panel.spec),
        [
            *style.unlike(panel.points),
            f"links of {rates} Mb/s",
            f"queues of {queues} packets",
            f"n = {len(panel.seeds)}",
            "simulated" if panel.spec.engine in SIMULATED_HOSTS else "real hosts",
        ],
        [
            *style.doubts(panel.points),
            "Grey: the tolerance. Whiskers: 95 % interval.",
            "Filled: the fabric's clock stands still during stalls." if several else "",
        ],
        [look.key(width=2.4) for where, look in _STALLS.items() if where in shown],
        [*(look.key(size=4) for look in marks), *([hollow] if several else [])],
    )


def _metric(axes: Axes, name: str, found: Found, several: bool) -> None:
    """Draw the changes of a metric; hollow for the strict clock, where `several` clocks are shown."""
    tolerance = TOLERANCES[name].most
    axes.axhspan(-tolerance, tolerance, color=style.GRID, alpha=0.6, lw=0, zorder=0)
    axes.axhline(0, color=style.FAINT, lw=0.8, zorder=1)
    for i, (series, of) in enumerate(sorted(found.items())):
        apart = _APART ** (i - (len(found) - 1) / 2)
        hollow = several and series.clock != ELASTIC
        bins = binned([change for change in of if change.metric == name], half)
        at = {b.share * apart: Mean(b.mean, 0.0 if b.half != b.half else b.half, hollow) for b in bins}
        kinds.curve(axes, at, series.look, 3.4)
    style.plain_log(axes.xaxis)
    axes.set_ylabel(_LABELS[name], fontsize=8.5)
