"""Utilisation of every link, from the least to the most used: hashed single paths leave links idle (CS244
2013, figure 4).

A link counts twice, once per direction. The upper chart has the links between switches, among which routing
chooses; the lower ones have each layer, including the hosts' own links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import BUSY_LINK_PCT, LINKS_BUSY_PCT, LINKS_UNUSED_PCT, UNUSED_LINK_PCT
from plots.data import Inputs, Level, Panel, Point, between_switches, link_layer
from plots.shared import ranks, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "link_utilisation"
_HEIGHT_IN, _LAYER_HEIGHT_IN = 2.5, 1.05
_LAYER_TITLES = {"host-edge": "host links", "edge-agg": "edge-aggr.", "agg-core": "aggr.-core"}
Curves = Mapping[int, ranks.Ranks]


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `LINKS_BUSY_PCT` and
    `LINKS_UNUSED_PCT` are drawn."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


def share_pct(curve: ranks.Ranks, *, above: float) -> float:
    """Return the share of the links of all seeds that are used by more than `above` %, in %."""
    return float(100 * (curve.values > above).mean())


def finding(panel: Panel) -> str:
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


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    points = {n: panel.best(n) for n in panel.subflows}
    curves = ranks.each_pooled({n: _utilisations(of) for n, of in points.items()})
    if not curves:
        return None
    layers = list(dict.fromkeys(link_layer(port) for of in points.values() for p in of for port in p.ports))
    several = len(layers) > 1
    sheet = Sheet((_HEIGHT_IN, 1), *([(_LAYER_HEIGHT_IN, len(layers))] if several else []))
    axes = sheet.axes[0][0]
    ranks.bands(axes, curves, max(panel.subflows))
    handles = _lines(axes, panel, curves)
    published = [_level(axes, level, panel) for level in _beside(panel, levels)]
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
    words = Text(finding(panel), subtitle, _caption(panel, curves, levels), style.absences(gaps))
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


def _level(axes: Axes, level: Level, panel: Panel) -> Line2D:
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


def _caption(panel: Panel, curves: Curves, levels: Sequence[Level]) -> Caption:
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
