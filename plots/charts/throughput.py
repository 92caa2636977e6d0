"""Mean goodput by transport, goodput of every flow, and utilisation of every link (SIGCOMM 2011; CS244 2013).

The flows and links of several seeds are sorted together, and a band shows the seeds (plots/shared/ranks.py).
A flat high curve of flows is a fair and well used network; a curve that starts low shows flows that collide.
Hashed single paths leave links idle. A link counts twice, once per direction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import (
    BUSY_LINK_PCT,
    GOODPUT_PCT_MEAN,
    GOODPUT_PCT_MIN,
    LINKS_BUSY_PCT,
    LINKS_UNUSED_PCT,
    UNUSED_LINK_PCT,
)
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from plots.data import MIN_SEEDS_FOR_INTERVAL, Cell, Inputs, Panel, between_switches, link_layer
from plots.shared import axis_labels, kinds, ranks, saving, style
from plots.shared.sheet import Sheet

_LABEL = 0.055
"""Height of a line of text as a share of the goodput axis, roughly."""


def throughput_finding(panel: Panel) -> str:
    """Return the title: what TCP and the largest measured subflow count reach.

    If all points are suspect, the title says so and draws no conclusion.
    """
    good = {count: panel.cell(count).mean_pct for count in panel.subflows}
    known = {count: mean for count, mean in good.items() if mean is not None}
    if not known:
        return _sighting(panel)
    optimum = panel.optimum_pct
    shared = not math.isclose(optimum, 100.0)
    unit = "%" if shared else "% of optimal"
    most = f", of at most {optimum:.3g} %" if shared else ""
    tcp = f"TCP {known[1]:.0f} %" if 1 in known else ""
    if list(known) == [1]:
        return f"TCP reaches {known[1]:.0f} {unit}{most}"
    count = max(known)
    mptcp = f"MPTCP with {count} subflows reaches {known[count]:.0f} {unit}"
    return ", ".join(part for part in (mptcp, tcp) if part) + most


def _sighting(panel: Panel) -> str:
    seen = {
        count: statistics.fmean(p.mean_pct or 0.0 for p in panel.cell(count).suspect)
        for count in panel.subflows
        if panel.cell(count).suspect
    }
    ends = sorted({min(seen), max(seen)}) if seen else []
    values = ", ".join(f"{style.transport(count)} {seen[count]:.0f} %" for count in ends)
    return f"No finding, all points are suspect; what is seen: {values}" if values else ""


@saving.per_panel()
def throughput(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw means with published ones, unless all flows have a size."""
    if all(point.only_transfers for point in panel.points):
        return None
    beside = inputs.beside(panel, GOODPUT_PCT_MEAN)
    optimum, several = panel.optimum_pct, len(panel.seeds) > 1
    cells = {count: panel.cell(count) for count in panel.subflows}
    sheet = Sheet((2.9, 1))
    axes = sheet.axes[0][0]
    tops = []
    for x, (count, cell) in enumerate(cells.items()):
        here = [level for level in beside if level.subflows == count]
        colour = style.colour(count, max(panel.subflows))
        top = (_seeds if several else _bar)(axes, x, cell, colour, _LABEL * optimum)
        _note_gap(axes, x, cell)
        tops.append(_published(axes, x, top, here, optimum) if here else top)
    style.percent_axis(axes, max(tops), optimum)
    axes.set_xlim(-0.6, len(cells) - 0.4)
    axes.set_xticks(range(len(cells)), style.short_names(cells))
    axes.set_xlabel(axis_labels.TRANSPORTS)
    axes.set_ylabel(GOODPUT_PCT_MEAN.axis_in(style.percent_of(panel)))
    enough = max(len(cell.ok) for cell in cells.values()) >= MIN_SEEDS_FOR_INTERVAL
    doubtful = any(cell.suspect for cell in cells.values())
    return sheet.finish(
        throughput_finding(panel) or inputs.title,
        style.subtitle(panel, "mean goodput of the flows"),
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            f"Dots: seeds; line: mean{'; whisker: 95 % interval' if enough else ''}." if several else "",
            style.definition(panel),
            *style.sources(beside),
        ],
        [*style.published_key(beside, panel), *kinds.doubt_key(doubtful, hatched=not several)],
    )


def _bar(axes: Axes, x: int, cell: Cell, colour: str, label: float) -> float:
    """Draw one seed as a bar with its value, hatched if suspect; return its height."""
    for point in (*cell.ok, *cell.suspect):
        height = point.mean_pct or 0.0
        kinds.bar(axes, x, height, 0.74, colour, point.suspect)
        return _value(
            axes, x, height, (height, height), label, style.INK if point.suspect else _readable_on(colour)
        )
    return 0.0


def _seeds(axes: Axes, x: int, cell: Cell, colour: str, label: float) -> float:
    """Draw each seed as a dot, the mean of the good ones, and its interval; return their height."""
    good, doubtful = ([point.mean_pct or 0.0 for point in of] for of in (cell.ok, cell.suspect))
    kinds.seeds(axes, x, good, doubtful, colour)
    values, mean = [*good, *doubtful], kinds.mean_of(good)
    if mean is None:
        return max(values, default=0.0) + label / 2
    reach = (min(*values, mean.value - mean.half), max(*values, mean.value + mean.half))
    return _value(axes, x, mean.value, reach, label, style.INK) + label / 2


def _value(axes: Axes, x: int, value: float, reach: tuple[float, float], label: float, colour: str) -> float:
    """Write the value at the foot, in a row with the others, or above its mark if that `reach`es so low.

    Returns how high mark and text reach.
    """
    lowest, highest = reach
    at_foot = lowest > 2 * label
    words = axes.annotate(
        f"{value:.0f}",
        (x, 0 if at_foot else highest),
        xytext=(0, 4 if at_foot else 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=colour if at_foot else style.INK,
        zorder=6,
    )
    if at_foot and colour == style.INK:
        words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    return highest if at_foot else highest + label


def _readable_on(colour: str) -> str:
    """Return black for a light bar, white for a dark one."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.6 else "white"


def _note_gap(axes: Axes, x: int, cell: Cell) -> None:
    """Write what is missing: upright in an empty place, small above the value if some seeds are lost."""
    if not (cell.gap or cell.lost):
        return
    axes.annotate(
        cell.gap or f"{len(cell.lost)} failed",
        (x, 0),
        xytext=(0, 4 if cell.gap else 17),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=90,
        fontsize=9 if cell.gap else 7.5,
        color=style.FAINT,
    )


def _published(axes: Axes, x: int, top: float, levels: Sequence[Published], optimum: float) -> float:
    """Draw published values as dashed lines over their place, with their text above them and above our marks.

    Returns how high they reach.
    """
    papers = {level.paper for level in levels}
    for level in levels:
        axes.hlines(
            level.value, x - 0.46, x + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
    lines = [
        style.bound(level) if len(papers) == 1 else f"{level.paper} {style.bound(level)}" for level in levels
    ]
    foot = max(top, *(level.value for level in levels))
    axes.annotate(
        "\n".join(lines),
        (x, foot),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=8,
        linespacing=1.1,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        zorder=6,
    )
    return foot + (0.3 + len(lines)) * _LABEL * optimum


def rank_finding(panel: Panel) -> str:
    """Return the title: the share of the slowest of all flows under the most subflows and under TCP."""
    good = {n: [p for p in panel.cell(n).ok if p.flows_pct] for n in panel.subflows}
    slowest = {n: min(min(point.flows_pct) for point in points) for n, points in good.items() if points}
    whose = " of all seeds" if any(len(points) > 1 for points in good.values()) else ""
    of = "% of optimal" if math.isclose(panel.optimum_pct, 100) else "%"
    tcp = slowest.pop(1, None)
    if not slowest:
        return "" if tcp is None else f"TCP's slowest flow{whose} gets {tcp:.0f} {of}"
    most = max(slowest)
    mptcp = f"With {most} subflows the slowest flow{whose} gets {slowest[most]:.0f} {of}"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


@saving.per_panel()
def rank(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw the goodput of every flow, with published lower bounds."""
    bounds = inputs.beside(panel, GOODPUT_PCT_MIN)
    beside = [level for level in bounds if level.relation == ">="]
    cells = {count: panel.cell(count) for count in panel.subflows}
    curves = ranks.each_pooled(
        {count: [p.flows_pct for p in cell.ok or cell.suspect] for count, cell in cells.items()}
    )
    if not curves:
        return None
    sheet = Sheet((2.9, 1))
    axes = sheet.axes[0][0]
    most = max(panel.subflows)
    ranks.bands(axes, curves, most)
    handles = [ranks.line(axes, curve, count, most, not cells[count].ok) for count, curve in curves.items()]
    published = [
        _level(axes, level, panel, [0, 100], [level.value] * 2, "every flow of {} " + style.bound(level))
        for level in beside
    ]
    style.percent_axis(axes, max(curve.values[-1] for curve in curves.values()), panel.optimum_pct)
    ranks.axis(axes, axis_labels.FLOWS)
    axes.set_ylabel(axis_labels.relative_goodput(panel))
    gaps = {count: cell.gap or "no flows" for count, cell in cells.items() if count not in curves}
    return sheet.finish(
        rank_finding(panel) or inputs.title,
        style.subtitle(panel, "goodput of every flow"),
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            *ranks.note(curves.values(), shaded=True),
            style.definition(panel),
            *style.sources(beside),
        ],
        handles,
        published,
        gaps=style.absences(gaps),
    )


def _level(
    axes: Axes, level: Published, panel: Panel, x: Sequence[float], y: Sequence[float], words: str
) -> Artist:
    """Draw a published bound as a dashed line; return its legend, which has `words` on the transport."""
    text = words.format(style.transport(level.subflows))
    (line,) = axes.plot(
        x, y, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
        label=f"{style.paper(level, panel.spec.topology.k)}: {text}",
    )  # fmt: skip
    return line


_LAYER_TITLES = {"host-edge": "host links", "edge-agg": "edge-aggr.", "agg-core": "aggr.-core"}
Curves = Mapping[int, ranks.Ranks]


def share_pct(curve: ranks.Ranks, *, above: float) -> float:
    """Return the share of the links of all seeds that are used by more than `above` %, in %."""
    return float(100 * (curve.values > above).mean())


def links_finding(panel: Panel) -> str:
    """Return the title: links above half load under the most subflows and under TCP, from good points."""
    curves = ranks.each_pooled(
        {n: _utilisations([p for p in panel.best(n) if not p.suspect]) for n in panel.subflows}
    )
    above = {n: share_pct(curve, above=BUSY_LINK_PCT) for n, curve in curves.items()}
    tcp = above.pop(1, None)
    if not above:
        return f"With TCP {tcp:.0f} % of links are above half load" if tcp is not None else ""
    most = max(above)
    mptcp = f"With {most} subflows {above[most]:.0f} % of links are above half load"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


@saving.per_panel()
def link_utilisation(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw the links between switches, and small charts of each layer, with published shares of them."""
    points = {n: panel.best(n) for n in panel.subflows}
    curves = ranks.each_pooled({n: _utilisations(of) for n, of in points.items()})
    if not curves:
        return None
    layers = list(dict.fromkeys(link_layer(port) for of in points.values() for p in of for port in p.ports))
    several = len(layers) > 1
    sheet = Sheet((2.5, 1), *([(1.05, len(layers))] if several else []))
    axes = sheet.axes[0][0]
    ranks.bands(axes, curves, max(panel.subflows))
    handles = _lines(axes, panel, curves)
    beside = [
        level for quantity in (LINKS_BUSY_PCT, LINKS_UNUSED_PCT) for level in inputs.beside(panel, quantity)
    ]
    which = "links between switches" if several else "links"
    count = max(len(curve.values) // curve.seeds for curve in curves.values())
    axes.set_xlabel(f"{count} {which}, least used first (%)")
    axes.set_ylabel("utilisation (%)")
    for small, layer in zip(sheet.axes[1] if several else [], layers, strict=False):
        _lines(small, panel, ranks.each_pooled({n: _utilisations(points[n], layer) for n in curves}))
        small.set_title(_LAYER_TITLES.get(layer, layer), color=style.FAINT)
        small.set_xticks([0, 50, 100])
        small.set_yticks([0, 50, 100])
        small.tick_params(labelleft=small is sheet.axes[1][0])
    gaps = {n: panel.absence(n) or "no ports" for n in panel.subflows if n not in curves}
    unused = [
        f"{style.transport(n)}: {100 - share_pct(curve, above=UNUSED_LINK_PCT):.0f} %"
        for n, curve in curves.items()
    ]
    return sheet.finish(
        links_finding(panel) or inputs.title,
        style.subtitle(panel, "utilisation of every link"),
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            *ranks.note(curves.values(), "links", shaded=True),
            f"Links below {UNUSED_LINK_PCT:g} %: {', '.join([unused[0], *unused[1:][-1:]])}.",
            *style.sources(beside),
        ],
        handles,
        [_links_level(axes, level, panel) for level in beside],
        gaps=style.absences(gaps),
    )


def _utilisations(points: Sequence[PointResult], layer: str = "") -> list[list[float]]:
    """Return the utilisation in % of the links of each point.

    It covers a layer's links or those between switches; all links if there are none (a star).
    """
    if layer:
        return [[p.utilisation_pct for p in point.ports if link_layer(p) == layer] for point in points]
    counted = [[port for port in point.ports if between_switches(port)] or point.ports for point in points]
    return [[port.utilisation_pct for port in ports] for ports in counted]


def _lines(axes: Axes, panel: Panel, curves: Curves) -> list[Line2D]:
    lines = [
        ranks.line(axes, curve, count, max(panel.subflows), panel.dubious(count))
        for count, curve in curves.items()
    ]
    axes.axhline(BUSY_LINK_PCT, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 104)
    axes.set_yticks(range(0, 101, 25))
    return lines


def _links_level(axes: Axes, level: Published, panel: Panel) -> Artist:
    """Draw a published share of the links where the curve must rise from 0."""
    unused = level.metric.quantity == LINKS_UNUSED_PCT
    x = [level.value] * 2 if unused else [100 - level.value, 100]
    y = [0, BUSY_LINK_PCT / 2] if unused else [BUSY_LINK_PCT] * 2
    what = "unused" if unused else f"above {BUSY_LINK_PCT:g} %"
    return _level(axes, level, panel, x, y, f"{style.bound(level)} of links {what} with {{}}")
