"""Replicated networks: the share of a bottleneck beside TCP, and traffic on the more congested of two paths.

Every replica is a repetition. A series is one algorithm; each of its marks pools the replicas of all good
points, or of the suspect ones (hollow) where no point is good.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from analysis.quantities import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED, Quantity
from analysis.shares import bottleneck_shares_pct, congested_shares_pct
from common.text import counted
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from model.spec import RunSpec
from plots.data import MIN_SEEDS_FOR_INTERVAL, Inputs, Panel, panels, together
from plots.shared import kinds, saving, style
from plots.shared.kinds import Mean
from plots.shared.sheet import Sheet

ValuesOf = Callable[[PointResult], Sequence[float]]


@dataclass(frozen=True)
class ReplicaShares:
    """The repetitions of one algorithm at one subflow count, in %, and whether they are suspect."""

    values: tuple[float, ...]
    suspect: bool

    @property
    def mean(self) -> Mean:
        return kinds.mean_of(self.values, hollow=self.suspect) or Mean(0.0)


@dataclass(frozen=True)
class Series:
    """One algorithm's panel."""

    panel: Panel

    @property
    def algorithm(self) -> str:
        return self.panel.spec.transport.cc

    def shares(self, subflows: int, values_of: ValuesOf) -> ReplicaShares | None:
        """Return the repetitions at a subflow count; None if nothing was measured."""
        values = tuple(value for point in self.panel.best(subflows) for value in values_of(point))
        return ReplicaShares(values, self.panel.dubious(subflows)) if values else None


def _groups(inputs: Inputs) -> Iterable[tuple[RunSpec, list[Series]]]:
    """Yield the algorithms of each setting."""
    for group in together(panels(inputs.points, inputs.expected), "transport.cc"):
        of = sorted(map(Series, group), key=lambda series: transports.rank(series.algorithm))
        yield group[0].spec.neutral("transport.cc"), of


def _levels(inputs: Inputs, quantity: Quantity, series: Sequence[Series]) -> list[Published]:
    """Return the expected values that belong in this chart."""
    return [
        level
        for of in series
        for level in inputs.beside(of.panel, quantity)
        if level.algorithm == of.algorithm
    ]


def _finish(
    sheet: Sheet,
    title: str,
    about: str,
    series: Sequence[Series],
    shown: Sequence[ReplicaShares],
    beside: Sequence[Published],
    theory: str,
    *,
    named: bool,
) -> Figure:
    """Lay out a chart; its legend has the algorithms unless the axis names them."""
    most = max((len(each.values) for each in shown), default=0)
    whiskers = "; whisker: 95 % interval" if most >= MIN_SEEDS_FOR_INTERVAL else ""
    formulas = ", ".join(dict.fromkeys(level.paper for level in beside))
    return sheet.finish(
        title,
        f"{style.network(series[0].panel.spec)}: {about}",
        style.parameters(*(of.panel for of in series), congestion=""),
        [
            *style.doubts([point for of in series for point in of.panel.points]),
            f"Dots: up to {counted(most, 'repetition')}; marker: mean{whiskers}.",
            f"Theory: {formulas}." if formulas else "",
        ],
        [
            *([] if named else [kinds.look_of(of.algorithm, "").key(size=6) for of in series]),
            *kinds.doubt_key(any(each.suspect for each in shown)),
        ],
        [kinds.dashed_key(f"theory: {theory}")] if beside else [],
    )


def shares_of(series: Sequence[Series]) -> dict[tuple[str, int], ReplicaShares]:
    """Return the repetitions by algorithm and subflow count."""
    found = {
        (of.algorithm, n): of.shares(n, lambda point: bottleneck_shares_pct(point.under_test))
        for of in series
        for n in of.panel.subflows
    }
    return {place: shares for place, shares in found.items() if shares is not None}


def share_finding(shares: Mapping[tuple[str, int], ReplicaShares]) -> str:
    """Return the title: the shares at the largest subflow count, uncoupled first. Suspect points do not
    count."""
    good = {place: each.mean.value for place, each in shares.items() if not each.suspect}
    most = max((n for _, n in good), default=0)
    parts = [f"{transports.title(cc)} {mean:.0f} %" for (cc, n), mean in good.items() if n == most]
    return f"{most} subflows beside one TCP: {', '.join(parts)}" if parts else ""


@saving.per_group(_groups)
def share(series: Sequence[Series], inputs: Inputs) -> Figure | None:
    shares = shares_of(series)
    if not shares:
        return None
    counts = series[0].panel.subflows
    beside = _levels(inputs, SHARE_OF_BOTTLENECK, series)
    sheet = Sheet((3.1, 1))
    axes = sheet.axes[0][0]
    for number, of in enumerate(series):
        for place, n in enumerate(counts):
            if each := shares.get((of.algorithm, n)):
                x = place + kinds.beside(number, len(series), 0.72)
                kinds.dots(axes, x, each.values, kinds.look_of(of.algorithm), each.suspect)
    for value, n in {(level.value, level.subflows) for level in beside}:
        kinds.published(axes, value, counts.index(n))
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlim(-0.55, len(counts) - 0.45)
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.set_xlabel("subflows of the MPTCP flow")
    axes.set_ylabel(SHARE_OF_BOTTLENECK.short_axis)
    return _finish(
        sheet, share_finding(shares) or inputs.title, "one MPTCP flow and one TCP share a link", series,
        list(shares.values()), beside, "n/(n+1) uncoupled, 1/2 coupled", named=False,
    )  # fmt: skip


@saving.per_group(_groups)
def shift(series: Sequence[Series], inputs: Inputs) -> Figure | None:
    """Draw the largest subflow count that was measured."""
    n = max(
        (n for n in series[0].panel.subflows if n > 1 and any(of.panel.best(n) for of in series)), default=1
    )
    found = {of.algorithm: of.shares(n, lambda point: congested_shares_pct(point.ports)) for of in series}
    shares = {algorithm: each for algorithm, each in found.items() if each is not None}
    if n == 1 or not shares:
        return None
    beside = [level for level in _levels(inputs, SHARE_ON_CONGESTED, series) if level.subflows == n]
    sheet = Sheet((2.9, 1))
    axes = sheet.axes[0][0]
    for x, (algorithm, each) in enumerate(shares.items()):
        kinds.dots(axes, x, each.values, kinds.look_of(algorithm), each.suspect)
        for level in beside:
            if level.algorithm == algorithm:
                kinds.published(axes, level.value, x, 0.33)
    top = max(*(v for each in shares.values() for v in each.values), *(level.value for level in beside), 40)
    axes.set_ylim(0, min(102, 1.06 * top))
    axes.axhline(50, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlim(-0.5, len(shares) - 0.5)
    axes.set_xticks(range(len(shares)), list(map(transports.title, shares)))
    axes.set_ylabel(textwrap.fill(SHARE_ON_CONGESTED.short_axis, 20))
    good = {cc: each.mean.value for cc, each in shares.items() if not each.suspect}
    parts = ", ".join(f"{transports.title(cc)} {mean:.0f} %" for cc, mean in good.items())
    return _finish(
        sheet, f"Sent over the more congested path: {parts}" if parts else inputs.title,
        f"an MPTCP flow with {n} subflows, one per path", series, list(shares.values()), beside,
        "equilibrium at equal round-trip times", named=True,
    )  # fmt: skip
