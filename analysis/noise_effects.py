"""Effects of noise on a point's metrics, relative to the quiet point of the same setting and seed. Pure.

Each change is compared with a tolerance that was fixed before any measurement (docs/fidelity.md). Changes are
ordered by share of delay: the 99th percentile of lateness over a packet's delay without noise
(model/noise.py).
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.completion import completions
from analysis.stats import jain
from model.noise import delay_budget_us, lateness_ms, queue_us
from model.reasons import COMPLETION, GOODPUT, JAIN, RTT, SLOWEST
from model.result import FlowRow, under_test
from model.spec import RunSpec

HOPS = 6
"""Links of a path between pods of a FatTree, including the hosts' links."""
EDGES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Edges of the bins of share of delay."""
Half = Callable[[Sequence[float]], float]
"""A function that returns half the width of the 95 % confidence interval of a mean."""


@dataclass(frozen=True)
class Tolerance:
    """How far noise may move a metric, in `unit`; a relative tolerance is a change in percent."""

    most: float
    unit: str
    relative: bool = False


TOLERANCES: Mapping[str, Tolerance] = {
    GOODPUT: Tolerance(2.0, "points of % of optimal"),
    SLOWEST: Tolerance(5.0, "points of % of optimal"),
    JAIN: Tolerance(0.02, ""),
    RTT: Tolerance(10.0, "%", relative=True),
    COMPLETION: Tolerance(10.0, "%", relative=True),
}


def delay_share(spec: RunSpec) -> float:
    """Return the 99th percentile of injected lateness over the delay of a path with one full queue."""
    return 1000 * lateness_ms(spec.noise, 0.99) / delay_budget_us(spec, HOPS)


def queue_share(spec: RunSpec) -> float:
    """Return the 99th percentile of injected lateness over the drain time of a full queue; 0 if unbounded."""
    full_us = queue_us(spec.link)
    return 1000 * lateness_ms(spec.noise, 0.99) / full_us if full_us else 0.0


def metrics(flows: Sequence[FlowRow], baseline_mbps: float) -> dict[str, float]:
    """Return the metrics of one point; goodput covers flows without a size, in percent of the baseline."""
    endless = [flow for flow in under_test(flows) if not flow.size_bytes]
    took_ms = completions(flows).took_ms
    found = {COMPLETION: statistics.fmean(took_ms)} if took_ms else {}
    if endless and not took_ms:
        pct = [100 * flow.goodput_mbps / baseline_mbps for flow in endless]
        found |= {GOODPUT: statistics.fmean(pct), SLOWEST: min(pct), JAIN: jain(pct)}
        rtts = [flow.srtt_ms_mean for flow in endless if math.isfinite(flow.srtt_ms_mean)]
        found |= {RTT: statistics.fmean(rtts)} if rtts else {}
    return found


def changes(quiet: Mapping[str, float], noisy: Mapping[str, float]) -> dict[str, float]:
    """Return the change of each metric that both points have, in the unit of its tolerance."""
    found = {}
    for name, tolerance in TOLERANCES.items():
        if name in quiet and name in noisy:
            change = noisy[name] - quiet[name]
            found[name] = 100 * change / quiet[name] if tolerance.relative else change
    return found


@dataclass(frozen=True)
class Change:
    """Change of one metric at one point: `share` of the delay, the change, the setting, and the quiet point
    that it was compared with. Several changes may share one quiet point."""

    metric: str
    share: float
    change: float
    setting: str
    quiet: str


@dataclass(frozen=True)
class ShareBin:
    """Changes of one metric at shares of delay from `low` to `high`, averaged for each quiet point.

    Holds their mean, half its 95 % interval (nan for too few) and their number. `share` is the geometric
    mean of the shares; `worst` is the largest mean of one setting.
    """

    low: float
    high: float
    share: float
    mean: float
    half: float
    n: int
    worst: float

    def within(self, most: float) -> bool:
        return abs(self.mean) + self.half <= most


def binned(found: Iterable[Change], half: Half) -> list[ShareBin]:
    """Bin the changes of one metric by increasing share of delay; changes at a share of 0 are left out."""
    groups: dict[int, list[Change]] = {}
    for change in (change for change in found if change.share > 0):
        groups.setdefault(bisect_right(EDGES, change.share), []).append(change)
    return [_bin(number, groups[number], half) for number in sorted(groups)]


def _bin(number: int, group: Sequence[Change], half: Half) -> ShareBin:
    ends = (0.0, *EDGES, math.inf)
    of_settings = _means(group, lambda change: change.setting)
    values = _means(group, lambda change: change.quiet)
    return ShareBin(
        low=ends[number],
        high=ends[number + 1],
        share=math.exp(statistics.fmean(math.log(change.share) for change in group)),
        mean=statistics.fmean(values),
        half=half(values),
        n=len(values),
        worst=max(of_settings, key=abs),
    )


def _means(group: Sequence[Change], key: Callable[[Change], str]) -> list[float]:
    groups: dict[str, list[float]] = {}
    for change in group:
        groups.setdefault(key(change), []).append(change.change)
    return [statistics.fmean(each) for each in groups.values()]


def largest_share(bins: Sequence[ShareBin], most: float) -> float:
    """Return the largest share of delay up to which every bin is within the tolerance; 0 if none is."""
    largest = 0.0
    for each in bins:
        if not each.within(most):
            break
        largest = each.high if math.isfinite(each.high) else each.share
    return largest
