"""Pairs of an emulated and a simulated point, and how well they agree flow by flow. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.stats import correlation, rank_correlation
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from harness.points.baseline import is_baseline
from harness.results.summary import Judged
from model.result import under_test
from model.spec import RunSpec, StackSpec

STARTS_TOGETHER = "native"
"""The traffic whose flows all start at once, as simulated flows do."""


def alike(spec: RunSpec) -> RunSpec:
    """Return the same for specs that differ only in the engine, and in fields that only one engine uses."""
    traffic = STARTS_TOGETHER if spec.engine in SIMULATED_HOSTS else spec.traffic
    return dataclasses.replace(spec, engine="any", stack=StackSpec(), traffic=traffic)


@dataclass(frozen=True)
class Pair:
    """The same point, emulated and simulated."""

    emulated: Judged
    simulated: Judged

    @property
    def goodputs(self) -> tuple[list[float], list[float]]:
        """The goodput of each flow in Mb/s, emulated and simulated, in the same order."""
        return _goodputs(self.emulated), _goodputs(self.simulated)

    @property
    def correlation(self) -> float | None:
        """Pearson's correlation of the flows' goodputs."""
        return correlation(*self.goodputs)

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rank correlation of the flows' goodputs."""
        return rank_correlation(*self.goodputs)

    @property
    def mean_difference(self) -> float | None:
        """Simulated minus emulated mean goodput, each in % of its own baseline."""
        here, there = self.simulated.goodput_pct, self.emulated.goodput_pct
        return here.mean - there.mean if here and there else None


def _goodputs(judged: Judged) -> list[float]:
    return [flow.goodput_mbps for flow in sorted(under_test(judged.point.flows), key=lambda flow: flow.flow)]


def pairs(points: Iterable[Judged]) -> list[Pair]:
    """Pair the points that were emulated and simulated; points without flows and baselines are left out.

    Where there are points in real time, those in virtual time are compared with them too.
    """
    points = [judged for judged in points if judged.point.flows and not is_baseline(judged.spec)]
    ran = engines(points)
    standard = next((name for name in LINUX_HOSTS if name in ran), "")
    emulated: dict[str, Judged] = {}
    others: list[Judged] = []
    for judged in points:
        if judged.spec.engine == standard:
            emulated[alike(judged.spec).canonical()] = judged
        else:
            others.append(judged)
    keyed = ((alike(other.spec).canonical(), other) for other in others)
    return [Pair(emulated[key], other) for key, other in keyed if key in emulated]


def engines(points: Iterable[Judged]) -> Sequence[str]:
    """Return the engines that ran any of the points."""
    return sorted({judged.spec.engine for judged in points})
