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


def shares(panel: Panel, subflows: int, values_of: ValuesOf) -> ReplicaShares | None:
    """Return the repetitions of an algorithm's panel at a subflow count; None if nothing was measured."""
    values = tuple(value for point in panel.best(subflows) for value in values_of(point))
    return ReplicaShares(values, panel.dubious(subflows)) if values else None


def _groups(inputs: Inputs) -> Iterable[tuple[RunSpec, list[Panel]]]:
    """Yield the panels of each setting, one per algorithm."""
    for group in together(panels(inputs.points, inputs.expected), "transport.cc"):
        yield group[0].spec.neutral("transport.cc"), sorted(group, key=lambda of: transports.rank(of.ccs))


def _levels(inputs: Inputs, quantity: Quantity, series: Sequence[Panel]) -> list[Published]:
    """Return the expected values that belong in this chart."""
    return [level for of in series for level in inputs.beside(of, quantity) if level.algorithm == of.ccs]


def _finish(
    sheet: Sheet,
    title: str,
    about: str,
    series: Sequence[Panel],
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
        f"{style.network(series[0].spec)}: {about}",
        style.parameters(*series, congestion=""),
        [
            *style.doubts([point for of in series for point in of.points]),
            f"Dots: up to {counted(most, 'repetition')}; marker: mean{whiskers}.",
            f"Theory: {formulas}." if formulas else "",
        ],
        [
            *([] if named else [kinds.look_of(of.ccs, "").key(size=6) for of in series]),
            *kinds.doubt_key(any(each.suspect for each in shown)),
        ],
        [kinds.dashed_key(f"theory: {theory}")] if beside else [],
    )


def shares_of(series: Sequence[Panel]) -> dict[tuple[str, int], ReplicaShares]:
    """Return the repetitions by algorithm and subflow count."""
    found = {
        (of.ccs, n): shares(of, n, lambda point: bottleneck_shares_pct(point.under_test))
        for of in series
        for n in of.subflows
    }
    return {place: each for place, each in found.items() if each is not None}


def share_finding(shares: Mapping[tuple[str, int], ReplicaShares]) -> str:
    """Return the title: the shares at the largest subflow count, uncoupled first. Suspect points do not
    count."""
    good = {place: each.mean.value for place, each in shares.items() if not each.suspect}
    most = max((n for _, n in good), default=0)
    parts = [f"{transports.title(cc)} {mean:.0f} %" for (cc, n), mean in good.items() if n == most]
    return f"{most} subflows beside one TCP: {', '.join(parts)}" if parts else ""


@saving.per_group(_groups)
def share(series: Sequence[Panel], inputs: Inputs) -> Figure | None:
    found = shares_of(series)
    if not found:
        return None
    counts = series[0].subflows
    beside = _levels(inputs, SHARE_OF_BOTTLENECK, series)
    sheet = Sheet((3.1, 1))
    axes = sheet.axes[0][0]
    for number, of in enumerate(series):
        for place, n in enumerate(counts):
            if each := found.get((of.ccs, n)):
                x = place + kinds.beside(number, len(series), 0.72)
                kinds.dots(axes, x, each.values, kinds.look_of(of.ccs), each.suspect)
    for value, n in {(level.value, level.subflows) for level in beside}:
        kinds.published(axes, value, counts.index(n))
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlim(-0.55, len(counts) - 0.45)
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.set_xlabel("subflows of the MPTCP flow")
    axes.set_ylabel(SHARE_OF_BOTTLENECK.short_axis)
    return _finish(
        sheet, share_finding(found) or inputs.title, "one MPTCP flow and one TCP share a link", series,
        list(found.values()), beside, "n/(n+1) uncoupled, 1/2 coupled", named=False,
    )  # fmt: skip


@saving.per_group(_groups)
def shift(series: Sequence[Panel], inputs: Inputs) -> Figure | None:
    """Draw the largest subflow count that was measured."""
    n = max((n for n in series[0].subflows if n > 1 and any(of.best(n) for of in series)), default=1)
    found = {of.ccs: shares(of, n, lambda point: congested_shares_pct(point.ports)) for of in series}
    shown = {algorithm: each for algorithm, each in found.items() if each is not None}
    if n == 1 or not shown:
        return None
    beside = [level for level in _levels(inputs, SHARE_ON_CONGESTED, series) if level.subflows == n]
    sheet = Sheet((2.9, 1))
    axes = sheet.axes[0][0]
    for x, (algorithm, each) in enumerate(shown.items()):
        kinds.dots(axes, x, each.values, kinds.look_of(algorithm), each.suspect)
        for level in beside:
            if level.algorithm == algorithm:
                kinds.published(axes, level.value, x, 0.33)
    top = max(*(v for each in shown.values() for v in each.values), *(level.value for level in beside), 40)
    axes.set_ylim(0, min(102, 1.06 * top))
    axes.axhline(50, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlim(-0.5, len(shown) - 0.5)
    axes.set_xticks(range(len(shown)), list(map(transports.title, shown)))
    axes.set_ylabel(textwrap.fill(SHARE_ON_CONGESTED.short_axis, 20))
    good = {cc: each.mean.value for cc, each in shown.items() if not each.suspect}
    parts = ", ".join(f"{transports.title(cc)} {mean:.0f} %" for cc, mean in good.items())
    return _finish(
        sheet, f"Sent over the more congested path: {parts}" if parts else inputs.title,
        f"an MPTCP flow with {n} subflows, one per path", series, list(shown.values()), beside,
        "equilibrium at equal round-trip times", named=True,
    )  # fmt: skip
