"""Goodput over time while links fail and come back, and what each flow gets meanwhile."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Sequence

from matplotlib.patches import Patch

from analysis import robustness
from harness.results.point_results import PointResult
from model.links import outage
from model.result import Table
from plots.data import MIN_SEEDS_FOR_INTERVAL, Inputs, Panel
from plots.kinds.axis import FROM_ZERO, Axis
from plots.kinds.lines import Level, Line, Lines
from plots.kinds.ranks import Ranks, note
from plots.picture import Page, Picture, Row, absent, alike, by_subflows
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look, Mean

Outage = tuple[float, float]


def _failures(points: Iterable[PointResult]) -> Iterator[tuple[PointResult, Outage, Table]]:
    """Yield points, when links of theirs are down (in s from the opening of the window), and their sampled
    goodput. Points without an outage or without samples are left out."""
    for point in points:
        outage_s = outage(point.spec)
        goodput = point.read_table("goodput") if outage_s else None
        if outage_s and goodput:
            yield point, outage_s, goodput


def over_time(points: Iterable[PointResult]) -> tuple[list[float], list[list[float]]]:
    """Return the instants that all points (seeds) have, and the goodput of all flows of each point then,
    in % of that before the failure."""
    series = [
        found
        for _, outage_s, goodput in _failures(points)
        if (found := robustness.of_before_pct(goodput, outage_s)) is not None
    ]
    if not series:
        return [], []
    # Clocks of real runs differ by milliseconds.
    count = min(len(times) for times, _ in series)
    return series[0][0][:count].tolist(), [pct[:count].tolist() for _, pct in series]


def while_down_pct(points: Iterable[PointResult]) -> list[list[float]]:
    """Return the goodput of each point's flows while links are down, in % of a link."""
    return [
        [100 * mbps / point.rate_mbps for mbps in robustness.while_down_mbps(goodput, outage_s)]
        for point, outage_s, goodput in _failures(points)
    ]


def stalled_pct(points: Iterable[PointResult]) -> float | None:
    """Return how many flows stand still while links are down, in percent, averaged over the points."""
    stalled = [
        value
        for point, outage_s, goodput in _failures(points)
        if (value := robustness.stalled_pct(goodput, outage_s, point.rate_mbps)) is not None
    ]
    return statistics.fmean(stalled) if stalled else None


def _failure(panel: Panel, _: Inputs) -> Page | None:
    points = {n: of for n in panel.subflows if (of := panel.best(n))}
    outage_s = next(filter(None, (outage(point.spec) for point in panel.points)), None)
    curves = {n: over_time(of) for n, of in points.items()}
    if outage_s is None or not any(times for times, _ in curves.values()):
        return None
    down = {id(point): values for of in points.values() for point in of for values in while_down_pct([point])}

    def while_down(point: PointResult) -> list[float]:
        return down.get(id(point), [])

    series = by_subflows(panel, while_down)
    lines = [
        _line(*curves[n], dataclasses.replace(one.look, label=""))
        for one in series
        if curves[n := one.points[0].subflows][0]
    ]
    cut, repaired = (
        Level(when_s, ":", style.INK, 0.9, words, vertical=True)
        for when_s, words in zip(outage_s, ("cut", "repaired"), strict=True)
    )
    above = Lines(lines, y=FROM_ZERO, levels=[cut, repaired, Level(100.0, counts=True)], shade=outage_s)
    most = max((max(of) for of in down.values() if of), default=0.0)
    below = Ranks(while_down, y=Axis(low=0, covers=(0, max(100.0, most))))
    stalled = {n: value for n, of in points.items() if (value := stalled_pct(of)) is not None}
    ends = [(style.transport(n), stalled[n]) for n in sorted({min(stalled), max(stalled)})] if stalled else []
    bands = "; bands: 95 % interval" if len(panel.seeds) >= MIN_SEEDS_FOR_INTERVAL else ""
    return Page(
        rows=[
            Row(2.4, [above], axis_labels.SECONDS_OF_WINDOW, "all flows (% of before)"),
            Row(2.1, [below], "flows while links are down, slowest first (%)", "goodput (% of a link)"),
        ],
        about=style.subtitle(panel, "while links fail"), numbers={"stalled": ends} if ends else None,
        points=panel.points, settings=style.parameters(panel), series=series,
        notes=[
            f"Above: means over the seeds{bands}." if len(panel.seeds) > 1 else "",
            *(words.replace("Curves", "Below", 1) for words in note(series, while_down)),
            "Routing does not learn of the failure.",
        ],
        keys=[
            *(one.look.key(size=3) for one in series),
            Patch(facecolor=kinds.SHADE, label="links are down"),
        ],
        gaps=absent(panel, series, "no goodput"),
    )  # fmt: skip


def _line(times: Sequence[float], series: Sequence[Sequence[float]], look: Look) -> Line:
    """Return a curve of steps, averaged over the seeds, with a band from six of them on. A sample covers the
    second before it."""
    columns = list(zip(*series, strict=True))
    means = [kinds.mean_of(column) or Mean(0.0) for column in columns]
    x, first = [times[0] - min(1.0, times[0]), *times], [means[0], *means]
    several = any(mean.half for mean in means)
    return Line(x, [mean.value for mean in first], look, look.width, step="pre",
                std=[mean.half for mean in first] if several else None)  # fmt: skip


failure = Picture(
    groups=alike(), page=_failure,
    finding="{% macro share(pct) %}{{ '%.0f %%' % pct if pct | round else 'none' }}{% endmacro %}"
    "While links are down {{ share(stalled[0][1]) }} of the {{ stalled[0][0] }} flows stand still"
    "{% for name, pct in stalled[1:] %}, {{ share(pct) }} of {{ name }}'s{% endfor %}",
)  # fmt: skip
