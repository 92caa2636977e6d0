"""Mean goodput by transport, goodput of every flow, and utilisation of every link (SIGCOMM 2011; CS244 2013).

The flows and links of several seeds are sorted together, and a band shows the seeds (plots/shared/ranks.py).
A flat high curve of flows is a fair and well used network; a curve that starts low shows flows that collide.
Hashed single paths leave links idle. A link counts twice, once per direction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.quantities import (
    BUSY_LINK_PCT,
    GOODPUT_PCT_MEAN,
    GOODPUT_PCT_MIN,
    LINKS_BUSY_PCT,
    LINKS_UNUSED_PCT,
    UNUSED_LINK_PCT,
)
from plots.data import (
    MIN_SEEDS_FOR_INTERVAL,
    Cell,
    Inputs,
    Level,
    Panel,
    Point,
    between_switches,
    interval_pct,
    link_layer,
)
from plots.shared import axis_labels, ranks, saving, style
from plots.shared.sheet import Caption, Sheet, Text

_THROUGHPUT_HEIGHT_IN = 2.9
_BAR = 0.74
_LABEL = 0.055
"""Height of a line of text as a share of the goodput axis, roughly."""


def draw_throughput(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `GOODPUT_PCT_MEAN` are drawn."""
    return saving.draw_panels("throughput", inputs, lambda panel: _throughput_chart(panel, inputs.levels))


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
    return f"No finding, all points are suspect; what is seen: {values}" if values else "Mean goodput"


def _throughput_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    if all(point.only_transfers for point in panel.points):
        return None
    beside = style.levels_of(panel, levels, GOODPUT_PCT_MEAN)
    optimum = panel.optimum_pct
    sheet = Sheet((_THROUGHPUT_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    mark = _seeds if len(panel.seeds) > 1 else _bar
    tops = []
    for x, count in enumerate(panel.subflows):
        cell, here = panel.cell(count), [level for level in beside if level.subflows == count]
        top = mark(axes, x, cell, style.colour(count, max(panel.subflows)), _LABEL * optimum)
        _note_gap(axes, x, cell)
        tops.append(_published(axes, x, top, here, optimum) if here else top)
    style.percent_axis(axes, max(tops), optimum)
    axes.set_xlim(-0.6, len(panel.subflows) - 0.4)
    axes.set_xticks(range(len(panel.subflows)), ["TCP" if n == 1 else str(n) for n in panel.subflows])
    axes.set_xlabel(axis_labels.TRANSPORTS)
    axes.set_ylabel(GOODPUT_PCT_MEAN.axis_in(style.percent_of(panel)))
    subtitle = style.subtitle(panel, "mean goodput of the flows")
    return sheet.finish(
        Text(throughput_finding(panel), subtitle, _throughput_caption(panel, beside)), _legend(panel, beside)
    )


def _throughput_caption(panel: Panel, beside: Sequence[Level]) -> Caption:
    return Caption(
        style.parameters(panel),
        [*style.doubts(panel.points), *_key(panel), style.definition(panel), *style.sources(beside)],
    )


def _legend(panel: Panel, beside: Sequence[Level]) -> list[Artist]:
    """Return the legend of marks that the axes do not name."""
    several = len(panel.seeds) > 1
    doubtful = any(panel.cell(count).suspect for count in panel.subflows)
    hatched = Patch(facecolor="white", edgecolor=style.FAINT, hatch=style.HATCH, label="suspect")
    hollow = Line2D([], [], color=style.FAINT, marker="o", markerfacecolor="white", lw=0, label="suspect")
    return [
        *style.published_key(beside, panel),
        *([hollow if several else hatched] if doubtful else []),
    ]


def _bar(axes: Axes, x: int, cell: Cell, colour: str, label: float) -> float:
    """Draw one seed as a bar with its value, hatched if suspect; return its height."""
    for point in (*cell.ok, *cell.suspect):
        height = point.mean_pct or 0.0
        if point in cell.ok:
            axes.bar(x, height, _BAR, color=colour)
            return _value(axes, x, height, (height, height), label, _readable_on(colour))
        axes.bar(x, height, _BAR, color="white", edgecolor=colour, hatch=style.HATCH, linewidth=1.2)
        return _value(axes, x, height, (height, height), label, style.INK)
    return 0.0


def _seeds(axes: Axes, x: int, cell: Cell, colour: str, label: float) -> float:
    """Draw each seed as a dot (hollow if suspect), the mean of the good ones, and its interval from six
    seeds on; return their height."""
    points = (*cell.ok, *cell.suspect)
    values = [point.mean_pct or 0.0 for point in points]
    step = min(0.11, 0.44 / max(len(points), 1))
    for i, (point, value) in enumerate(zip(points, values, strict=True)):
        face = colour if point in cell.ok else "white"
        where = x + step * (i - (len(points) - 1) / 2)
        axes.plot(where, value, marker="o", markersize=3.6, color=colour, markerfacecolor=face, zorder=3)
    mean, half = cell.mean_pct, interval_pct(cell.means_pct) or 0.0
    if mean is None:
        return max(values, default=0.0) + label / 2
    axes.hlines(mean, x - 0.3, x + 0.3, color=colour, linewidth=2.2, zorder=4)
    if half:
        axes.errorbar(x + 0.38, mean, yerr=half, color=colour, capsize=2, linewidth=1.4, zorder=4)
    reach = (min(*values, mean - half), max(*values, mean + half))
    return _value(axes, x, mean, reach, label, style.INK) + label / 2


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


def _published(axes: Axes, x: int, top: float, levels: Sequence[Level], optimum: float) -> float:
    """Draw published values as dashed lines over their place, with their text above them and above our marks.

    Returns how high they reach.
    """
    papers = {level.paper for level in levels}
    for level in levels:
        axes.hlines(
            level.value, x - 0.46, x + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
    lines = [level.bound if len(papers) == 1 else f"{level.paper} {level.bound}" for level in levels]
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


def _key(panel: Panel) -> list[str]:
    """Return how to read the marks if there are several seeds."""
    if len(panel.seeds) < 2:
        return []
    good = max(len(panel.cell(count).ok) for count in panel.subflows)
    spread = "; whisker: 95 % interval" if good >= MIN_SEEDS_FOR_INTERVAL else ""
    return [f"Dots: seeds; line: mean{spread}."]


_RANK_HEIGHT_IN = 2.9


def draw_rank(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; lower bounds of `GOODPUT_PCT_MIN` are drawn."""
    return saving.draw_panels("rank", inputs, lambda panel: _rank_chart(panel, inputs.levels))


def rank_finding(panel: Panel) -> str:
    """Return the title: the share of the slowest of all flows under the most subflows and under TCP."""
    good = {n: [p for p in panel.cell(n).ok if p.flows_pct] for n in panel.subflows}
    slowest = {n: min(min(point.flows_pct) for point in points) for n, points in good.items() if points}
    whose = " of all seeds" if any(len(points) > 1 for points in good.values()) else ""
    of = "% of optimal" if math.isclose(panel.optimum_pct, 100) else "%"
    tcp = slowest.pop(1, None)
    if not slowest:
        return "Goodput of every flow" if tcp is None else f"TCP's slowest flow{whose} gets {tcp:.0f} {of}"
    most = max(slowest)
    mptcp = f"With {most} subflows the slowest flow{whose} gets {slowest[most]:.0f} {of}"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


def _rank_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    bounds = style.levels_of(panel, levels, GOODPUT_PCT_MIN)
    beside = [level for level in bounds if level.relation == ">="]
    cells = {count: panel.cell(count) for count in panel.subflows}
    curves = ranks.each_pooled(
        {count: [p.flows_pct for p in cell.ok or cell.suspect] for count, cell in cells.items()}
    )
    if not curves:
        return None
    sheet = Sheet((_RANK_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    most = max(panel.subflows)
    ranks.bands(axes, curves, most)
    handles = [ranks.line(axes, curve, count, most, not cells[count].ok) for count, curve in curves.items()]
    published = [_rank_level(axes, level, panel) for level in beside]
    style.percent_axis(axes, max(curve.values[-1] for curve in curves.values()), panel.optimum_pct)
    ranks.axis(axes, axis_labels.FLOWS)
    axes.set_ylabel(axis_labels.relative_goodput(panel))
    gaps = {count: cell.gap or "no flows" for count, cell in cells.items() if count not in curves}
    subtitle = style.subtitle(panel, "goodput of every flow")
    words = Text(rank_finding(panel), subtitle, _rank_caption(panel, curves, beside), style.absences(gaps))
    return sheet.finish(words, handles, published)


def _rank_caption(panel: Panel, curves: Mapping[int, ranks.Ranks], beside: Sequence[Level]) -> Caption:
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            *ranks.note(curves.values(), shaded=True),
            style.definition(panel),
            *style.sources(beside),
        ],
    )


def _rank_level(axes: Axes, level: Level, panel: Panel) -> Line2D:
    """Draw a published lower bound of all flows as a dashed line."""
    cited, transport = level.cited(panel.spec.topology.k), style.transport(level.subflows)
    words = f"{cited}: every flow of {transport} {level.bound}"
    (line,) = axes.plot(
        [0, 100],
        [level.value, level.value],
        color="black",
        linestyle=style.PUBLISHED_DASH,
        linewidth=1.2,
        zorder=2,
        label=words,
    )
    return line


_LINKS_HEIGHT_IN, _LAYER_HEIGHT_IN = 2.5, 1.05
_LAYER_TITLES = {"host-edge": "host links", "edge-agg": "edge-aggr.", "agg-core": "aggr.-core"}
Curves = Mapping[int, ranks.Ranks]


def draw_link_utilisation(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `LINKS_BUSY_PCT` and
    `LINKS_UNUSED_PCT` are drawn."""
    return saving.draw_panels("link_utilisation", inputs, lambda panel: _links_chart(panel, inputs.levels))


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
        alone = f"With TCP {tcp:.0f} % of links are above half load" if tcp is not None else ""
        return alone or "Utilisation of every link"
    most = max(above)
    mptcp = f"With {most} subflows {above[most]:.0f} % of links are above half load"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


def _links_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    points = {n: panel.best(n) for n in panel.subflows}
    curves = ranks.each_pooled({n: _utilisations(of) for n, of in points.items()})
    if not curves:
        return None
    layers = list(dict.fromkeys(link_layer(port) for of in points.values() for p in of for port in p.ports))
    several = len(layers) > 1
    sheet = Sheet((_LINKS_HEIGHT_IN, 1), *([(_LAYER_HEIGHT_IN, len(layers))] if several else []))
    axes = sheet.axes[0][0]
    ranks.bands(axes, curves, max(panel.subflows))
    handles = _lines(axes, panel, curves)
    published = [_links_level(axes, level, panel) for level in _beside(panel, levels)]
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
    subtitle = style.subtitle(panel, "utilisation of every link")
    words = Text(links_finding(panel), subtitle, _links_caption(panel, curves, levels), style.absences(gaps))
    return sheet.finish(words, handles, published)


def _utilisations(points: Sequence[Point], layer: str = "") -> list[list[float]]:
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


def _beside(panel: Panel, levels: Sequence[Level]) -> list[Level]:
    return [
        level
        for quantity in (LINKS_BUSY_PCT, LINKS_UNUSED_PCT)
        for level in style.levels_of(panel, levels, quantity)
    ]


def _links_level(axes: Axes, level: Level, panel: Panel) -> Line2D:
    """Draw a published share of the links as a dashed line, where the curve must rise from 0."""
    unused = level.quantity == LINKS_UNUSED_PCT
    x = [level.value] * 2 if unused else [100 - level.value, 100]
    y = [0, BUSY_LINK_PCT / 2] if unused else [BUSY_LINK_PCT] * 2
    what = "unused" if unused else f"above {BUSY_LINK_PCT:g} %"
    whose = style.transport(level.subflows)
    words = f"{level.cited(panel.spec.topology.k)}: {level.bound} of links {what} with {whose}"
    (line,) = axes.plot(
        x,
        y,
        color="black",
        linestyle=style.PUBLISHED_DASH,
        linewidth=1.5,
        zorder=5,
        label=words,
    )
    return line


def _links_caption(panel: Panel, curves: Curves, levels: Sequence[Level]) -> Caption:
    unused = [
        f"{style.transport(n)}: {100 - share_pct(curve, above=UNUSED_LINK_PCT):.0f} %"
        for n, curve in curves.items()
    ]
    ends = [unused[0], *unused[1:][-1:]]
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            *ranks.note(curves.values(), "links", shaded=True),
            f"Links below {UNUSED_LINK_PCT:g} %: {', '.join(ends)}.",
            *style.sources(_beside(panel, levels)),
        ],
    )
