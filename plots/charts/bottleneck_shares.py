"""Replicated networks: the share of a bottleneck beside TCP, and traffic on the more congested of two paths.

Every replica is a repetition. A series is one algorithm; each of its marks pools the replicas of all good
points, or of the suspect ones (hollow) where no point is good.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from analysis.quantities import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED, Quantity
from analysis.shares import bottleneck_shares_pct, congested_shares_pct
from common.text import counted
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from plots.data import MIN_SEEDS_FOR_INTERVAL, Inputs, Panel
from plots.kinds.axis import Axis
from plots.kinds.bars import DOTS, Bars, Repeats
from plots.picture import Page, Picture, Row, alike
from plots.shared import kinds, style

ValuesOf = Callable[[PointResult], Sequence[float]]


def repetitions(panel: Panel, subflows: int, values_of: ValuesOf) -> Repeats | None:
    """Return the repetitions of an algorithm's panel at a subflow count; None if nothing was measured."""
    values = [value for point in panel.best(subflows) for value in values_of(point)]
    look, doubt = kinds.look_of(panel.ccs), panel.dubious(subflows)
    return Repeats(look, [] if doubt else values, values if doubt else []) if values else None


def by_algorithm(panel: Panel) -> list[Panel]:
    """Return the points of each algorithm."""
    of = kinds.grouped(panel.points, lambda point: point.cc)
    return [dataclasses.replace(panel, points=tuple(of[cc])) for cc in sorted(of, key=transports.rank)]


def _page(
    row: Row, about: str, panel: Panel, shown: Iterable[Repeats], beside: Iterable[Published], theory: str,
    numbers: Mapping[str, object] | None, *, named: bool,
) -> Page:  # fmt: skip
    """Return a page whose legend has the algorithms unless the axis names them."""
    most, doubtful = max(len(one.good or one.suspect) for one in shown), any(one.suspect for one in shown)
    whiskers = "; whisker: 95 % interval" if most >= MIN_SEEDS_FOR_INTERVAL else ""
    formulas = ", ".join(dict.fromkeys(level.paper for level in beside))
    return Page(
        rows=[row], about=f"{style.network(panel.spec)}: {about}", points=panel.points, numbers=numbers,
        settings=style.parameters(panel, congestion=""),
        notes=[
            f"Dots: up to {counted(most, 'repetition')}; marker: mean{whiskers}.",
            f"Theory: {formulas}." if formulas else "",
        ],
        keys=[
            *(kinds.look_of(of.ccs, "").key(size=6) for of in by_algorithm(panel) if not named),
            *kinds.doubt_key(doubtful),
        ],
        more_keys=[kinds.dashed_key(f"theory: {theory}")] if formulas else [],
    )  # fmt: skip


def _levels(inputs: Inputs, quantity: Quantity, of: Iterable[Panel]) -> list[Published]:
    """Return the expected values that belong in this chart."""
    return [level for one in of for level in inputs.beside(one, quantity) if level.algorithm == one.ccs]


def _means(samples: Mapping[str, Repeats]) -> dict[str, float]:
    """Return the means of good repetitions by the title of the algorithm."""
    means = {transports.title(cc): kinds.mean_of(one.good) for cc, one in samples.items()}
    return {name: mean.value for name, mean in means.items() if mean}


def shares(panel: Panel) -> dict[int, dict[str, Repeats]]:
    """Return the repetitions of each algorithm by subflow count."""
    of = {one.ccs: one for one in by_algorithm(panel)}

    def share(point: PointResult) -> Sequence[float]:
        return bottleneck_shares_pct(point.under_test)

    return {
        n: {cc: found for cc, one in of.items() if (found := repetitions(one, n, share))}
        for n in panel.subflows
    }


def _share(panel: Panel, inputs: Inputs) -> Page | None:
    found = shares(panel)
    shown = [one for each in found.values() for one in each.values()]
    if not shown:
        return None
    algorithms = by_algorithm(panel)
    beside = _levels(inputs, SHARE_OF_BOTTLENECK, algorithms)
    nothing = Repeats(kinds.look_of(""), [])
    places = {f"{n}": [each.get(of.ccs, nothing) for of in algorithms] for n, each in found.items()}
    levels = {
        f"{n}": [(value, "") for value in {lv.value for lv in beside if lv.subflows == n}] for n in found
    }
    bars = Bars(places, DOTS, Axis(low=0, high=100, ticks=range(0, 101, 20)), levels=levels, apart=0.72)
    most = max((n for n, each in found.items() if _means(each)), default=0)
    return _page(
        Row(3.1, [bars], "subflows of the MPTCP flow", SHARE_OF_BOTTLENECK.short_axis),
        "one MPTCP flow and one TCP share a link", panel, shown, beside, "n/(n+1) uncoupled, 1/2 coupled",
        {"subflows": most, "shares": _means(found[most])} if most else None, named=False,
    )  # fmt: skip


share = Picture(
    groups=alike("transport.cc"), page=_share,
    finding="{{ subflows }} subflows beside one TCP: {{ shares | listed('{:.0f} %') }}",
)  # fmt: skip


def _shift(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw the largest subflow count that was measured."""
    series, n = by_algorithm(panel), max((n for n in panel.subflows if panel.best(n)), default=1)
    found = {of.ccs: repetitions(of, n, lambda point: congested_shares_pct(point.ports)) for of in series}
    shown = {algorithm: each for algorithm, each in found.items() if each is not None}
    if n == 1 or not shown:
        return None
    beside = [level for level in _levels(inputs, SHARE_ON_CONGESTED, series) if level.subflows == n]
    levels = {
        transports.title(cc): [(level.value, "") for level in beside if level.algorithm == cc] for cc in shown
    }
    values = (value for one in shown.values() for value in one.good or one.suspect)
    top = max(*values, *(level.value for level in beside), 40)
    places = {transports.title(cc): [one] for cc, one in shown.items()}
    bars = Bars(places, DOTS, Axis(low=0, high=min(102, 1.06 * top)), levels=levels, line=50, reach=0.33)
    means = _means(shown)
    return _page(
        Row(2.9, [bars], y=textwrap.fill(SHARE_ON_CONGESTED.short_axis, 20)),
        f"an MPTCP flow with {n} subflows, one per path", panel, list(shown.values()), beside,
        "equilibrium at equal round-trip times", {"shares": means} if means else None, named=True,
    )  # fmt: skip


shift = Picture(
    groups=alike("transport.cc"), page=_shift,
    finding="Sent over the more congested path: {{ shares | listed('{:.0f} %') }}",
)  # fmt: skip
