"""Effect of CPU stalls on goodput, the slowest flow, fairness, round-trip and completion times, against
lateness as a share of a full queue's time, beside the tolerance of each.

Every change is between a point with stalls and the quiet one of the same setting and seed
(analysis/noise_effects.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

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
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves
from plots.picture import Page, Picture, Row
from plots.shared import kinds, style
from plots.shared.kinds import Look, Mean
from plots.shared.naming import setting_order

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


def numbers(found: Found) -> dict[str, object]:
    """Return how late packets may be before the first metric leaves its tolerance; 0 if no lateness was shown
    to do so."""
    everything = [change for series in found.values() for change in series]
    name = COMPLETION if all(change.metric == COMPLETION for change in everything) else GOODPUT
    tolerance = TOLERANCES[name]
    of = binned([change for change in everything if change.metric == name], half)
    return {
        "what": "the completion time" if name == COMPLETION else "mean goodput", "most": tolerance.most,
        "unit": "%" if tolerance.relative else "points", "share": largest_share(of, tolerance.most) or 0.0,
    }  # fmt: skip


def _groups(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    """Yield the points of each engine, network and workload with stalls."""
    usable = (point for point in inputs.points if not point.is_baseline and not point.failed)
    for _, of in sorted(kinds.grouped(usable, lambda point: setting_order(point.spec)[:5]).items()):
        if effects(of):
            yield of[0].spec, Panel(of[0].spec, tuple(sorted({p.subflows for p in of})), tuple(of))


def _noise(panel: Panel, _: Inputs) -> Page:
    found = effects(panel.points)
    names = [n for n in TOLERANCES if any(c.metric == n for of in found.values() for c in of)]
    several = len({series.clock for series in found}) > 1
    rows = [
        Row(1.25, [_changes(name, found, several, last=i + 2 >= len(names)) for name in names[i : i + 2]])
        for i in range(0, len(names), 2)
    ]
    shown = {series.where for series in found}
    marks = [Look(style.transport(n), style.INK, "s" if n == 1 else "o", "") for n in panel.subflows]
    hollow = Look("strict clock", style.INK, dash="").key(size=4, hollow=True)
    rates = "/".join(f"{rate:g}" for rate in sorted({p.rate_mbps for p in panel.points}))
    queues = "/".join(f"{pkts}" for pkts in sorted({p.spec.link.queue_pkts for p in panel.points}))
    return Page(
        rows=rows, about=style.network(panel.spec), numbers=numbers(found), points=panel.points,
        settings=[
            *style.unlike(panel.points), f"links of {rates} Mb/s", f"queues of {queues} packets",
            f"n = {len(panel.seeds)}",
            "simulated" if panel.spec.engine in SIMULATED_HOSTS else "real hosts",
        ],
        notes=[
            "Grey: the tolerance. Whiskers: 95 % interval.",
            "Filled: the fabric's clock stands still during stalls." if several else "",
        ],
        keys=[look.key(width=2.4) for where, look in _STALLS.items() if where in shown],
        more_keys=[*(look.key(size=4) for look in marks), *([hollow] if several else [])],
    )  # fmt: skip


noise = Picture(
    groups=_groups, page=_noise,
    finding="{% if share %}Late by up to {{ '%.2g' % share }} of a queue's time, {{ what }} stays"
    "{% else %}No lateness was shown to leave {{ what }}{% endif %} within {{ '%g' % most }} {{ unit }}",
)  # fmt: skip


def _changes(name: str, found: Found, several: bool, *, last: bool) -> Curves:
    """Return a plot of the changes of a metric; hollow for the strict clock, where `several` clocks are
    shown."""
    means = []
    for i, (series, of) in enumerate(sorted(found.items())):
        apart = _APART ** (i - (len(found) - 1) / 2)
        hollow = several and series.clock != ELASTIC
        bins = binned([change for change in of if change.metric == name], half)
        at = {b.share * apart: Mean(b.mean, 0.0 if b.half != b.half else b.half, hollow) for b in bins}
        means.append((series.look, at))
    x = Axis("lateness / queue time" if last else "", log=True)
    return Curves(means=means, x=x, y=Axis(_LABELS[name], size=8.5), line=0, within=TOLERANCES[name].most,
                  size=3.4)  # fmt: skip
