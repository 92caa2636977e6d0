"""Mean goodput by transport, goodput of every flow, and utilisation of every link (SIGCOMM 2011; CS244 2013).

The flows and links of several seeds are sorted together, and a band shows the seeds (plots/kinds/ranks.py).
A flat high curve of flows is a fair and well used network; a curve that starts low shows flows that collide.
Hashed single paths leave links idle. A link counts twice, once per direction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial

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
from plots.kinds.axis import Axis
from plots.kinds.bars import BARS, SEEDS, Bars, published, sample
from plots.kinds.ranks import Ranks, flows_pct, note
from plots.picture import Page, Picture, Row, absent, alike, by_subflows, tcp_and_most
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look


def throughput_numbers(panel: Panel, cells: Mapping[int, Cell]) -> Mapping[str, object] | None:
    """Return what TCP and the largest measured subflow count reach; where all points are suspect, what was
    seen at both ends."""
    good = {n: cell.mean_pct for n, cell in cells.items() if cell.ok}
    if good:
        most, of = max(good), {**_unit(panel), "optimum": panel.optimum_pct}
        return {**of, "tcp": good.get(1), "most": most, "mptcp": good[most] if most > 1 else None}
    seen = {n: statistics.fmean(p.mean_pct or 0.0 for p in c.suspect) for n, c in cells.items() if c.suspect}
    ends = dict.fromkeys((min(seen), max(seen))) if seen else ()
    return {"seen": {style.transport(n): seen[n] for n in ends}} if seen else None


def _unit(panel: Panel) -> dict[str, object]:
    shared = not math.isclose(panel.optimum_pct, 100)
    return {"shared": shared, "unit": "%" if shared else "% of optimal"}


def _throughput(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw means with published ones, unless all flows have a size."""
    if all(point.only_transfers for point in panel.points):
        return None
    beside, cells = inputs.beside(panel, GOODPUT_PCT_MEAN), {n: panel.cell(n) for n in panel.subflows}
    names, several = dict(zip(cells, style.short_names(cells), strict=True)), len(panel.seeds) > 1
    samples, levels, gaps = {}, {}, {}
    for n, cell in cells.items():
        name, look = names[n], Look("", style.colour(n, max(panel.subflows)))
        measured = (*cell.ok, *cell.suspect)
        samples[name] = [sample(look, measured, lambda point: point.mean_pct)] if measured else []
        levels[name] = published([level for level in beside if level.subflows == n])
        gaps[name] = cell.gap or (f"{len(cell.lost)} failed" if cell.lost else "")
    bars = Bars(samples, SEEDS if several else BARS, optimum=panel.optimum_pct, levels=levels, gaps=gaps,
                shown="{:.0f}")  # fmt: skip
    enough = max(len(cell.ok) for cell in cells.values()) >= MIN_SEEDS_FOR_INTERVAL
    doubtful = any(cell.suspect for cell in cells.values())
    return Page(
        rows=[
            Row(2.9, [bars], axis_labels.TRANSPORTS, GOODPUT_PCT_MEAN.axis_in(style.percent_of(panel)))
        ],
        about=style.subtitle(panel, "mean goodput of the flows"), numbers=throughput_numbers(panel, cells),
        points=panel.points, settings=style.parameters(panel),
        notes=[
            f"Dots: seeds; line: mean{'; whisker: 95 % interval' if enough else ''}." if several else "",
            style.definition(panel), *style.sources(beside),
        ],
        keys=[*style.published_key(beside, panel), *kinds.doubt_key(doubtful, hatched=not several)],
    )  # fmt: skip


throughput = Picture(
    groups=alike(), page=_throughput,
    finding="{% if seen is defined %}No finding, all points are suspect; "
    "what is seen: {{ seen | listed('{:.0f} %') }}{% else %}"
    "{% if mptcp is none %}TCP reaches {{ '%.0f' % tcp }} {{ unit }}"
    "{% else %}MPTCP with {{ most }} subflows reaches {{ '%.0f' % mptcp }} {{ unit }}"
    "{% if tcp is not none %}, TCP {{ '%.0f' % tcp }} %{% endif %}{% endif %}"
    "{% if shared %}, of at most {{ '%.3g' % optimum }} %{% endif %}{% endif %}",
)  # fmt: skip


def _rank(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw the goodput of every flow, with published lower bounds."""
    series = by_subflows(panel, flows_pct)
    if not series:
        return None
    bounds = [level for level in inputs.beside(panel, GOODPUT_PCT_MIN) if level.relation == ">="]
    levels = [([0.0, 100.0], [level.value] * 2) for level in bounds]
    plot = Ranks(flows_pct, optimum=panel.optimum_pct, bands=True, levels=levels)
    slowest = tcp_and_most(series, lambda points: min(min(point.flows_pct) for point in points))
    several = any(len(one.points) > 1 for one in series if not one.points[0].suspect)
    return Page(
        rows=[Row(2.9, [plot], axis_labels.FLOWS, axis_labels.relative_goodput(panel))],
        about=style.subtitle(panel, "goodput of every flow"),
        numbers={**_unit(panel), **slowest, "several": several} if slowest else None,
        points=panel.points, settings=style.parameters(panel), series=series,
        notes=[
            *note(series, flows_pct, shaded=True), style.definition(panel), *style.sources(bounds)
        ],
        keys=[one.look.key(size=3) for one in series],
        more_keys=[
            _level_key(level, panel, f"every flow of {{}} {style.bound(level)}") for level in bounds
        ],
        gaps=absent(panel, series, "no flows"),
    )  # fmt: skip


def _level_key(level: Published, panel: Panel, words: str) -> Line2D:
    """Return the legend of a published bound, which has `words` on the transport."""
    of = words.format(style.transport(level.subflows))
    return kinds.dashed_key(f"{style.paper(level, panel.spec.topology.k)}: {of}")


rank = Picture(
    groups=alike(), page=_rank,
    finding="{% if mptcp is none %}TCP's{% else %}With {{ most }} subflows the{% endif %} slowest flow"
    "{{ ' of all seeds' if several }} gets {{ '%.0f' % (tcp if mptcp is none else mptcp) }} {{ unit }}"
    "{% if none not in (tcp, mptcp) %}, with TCP {{ '%.0f' % tcp }} %{% endif %}",
)  # fmt: skip
_LAYER_TITLES = {"host-edge": "host links", "edge-agg": "edge-aggr.", "agg-core": "aggr.-core"}


def _utilisation(point: PointResult, layer: str = "") -> list[float]:
    """Return the utilisation in % of a layer's links, or of those between switches; of all links if there are
    none (a star)."""
    between = [port for port in point.ports if between_switches(port)] or point.ports
    ports = [port for port in point.ports if link_layer(port) == layer] if layer else between
    return [port.utilisation_pct for port in ports]


def _above_pct(points: Sequence[PointResult], above: float) -> float:
    """Return the share of the links of all points that are used by more than `above` %, in %."""
    return 100 * statistics.fmean(value > above for point in points for value in _utilisation(point))


def _links(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw the links between switches, and small charts of each layer, with published shares of them."""
    series = by_subflows(panel, _utilisation)
    if not series:
        return None
    points = [point for one in series for point in one.points]
    layers = list(dict.fromkeys(link_layer(port) for point in points for port in point.ports))
    several, high, wide = len(layers) > 1, range(0, 101, 25), (0, 50, 100)
    beside = [*inputs.beside(panel, LINKS_BUSY_PCT), *inputs.beside(panel, LINKS_UNUSED_PCT)]
    levels, level_keys = [], []
    for level in beside:
        unused = level.metric.quantity == LINKS_UNUSED_PCT
        x = [level.value] * 2 if unused else [100 - level.value, 100.0]
        levels.append((x, [0, BUSY_LINK_PCT / 2] if unused else [BUSY_LINK_PCT] * 2))
        what = "unused" if unused else f"above {BUSY_LINK_PCT:g} %"
        level_keys.append(_level_key(level, panel, f"{style.bound(level)} of links {what} with {{}}"))
    main = Ranks(_utilisation, Axis(low=0, high=100), Axis(low=0, high=104, ticks=high), bands=True,
                 line=BUSY_LINK_PCT, levels=levels)  # fmt: skip
    small = [
        Ranks(partial(_utilisation, layer=layer), Axis(low=0, high=100, ticks=wide),
              Axis(low=0, high=104, ticks=wide, bare=layer != layers[0]),
              title=_LAYER_TITLES.get(layer, layer), line=BUSY_LINK_PCT)
        for layer in layers
    ]  # fmt: skip
    count = f"{max(len(_utilisation(p)) for p in points)} links{' between switches' if several else ''}"
    below = {one.name: 100 - _above_pct(one.points, UNUSED_LINK_PCT) for one in (series[0], series[-1])}
    words = ", ".join(f"{name}: {pct:.0f} %" for name, pct in below.items())
    return Page(
        rows=[
            Row(2.5, [main], f"{count}, least used first (%)", "utilisation (%)"),
            *([Row(1.05, small)] if several else []),
        ],
        about=style.subtitle(panel, "utilisation of every link"),
        numbers=tcp_and_most(series, lambda points: _above_pct(points, BUSY_LINK_PCT)),
        points=panel.points, settings=style.parameters(panel), series=series,
        notes=[
            *note(series, _utilisation, "links", shaded=True), f"Links below {UNUSED_LINK_PCT:g} %: {words}.",
            *style.sources(beside),
        ],
        keys=[one.look.key(size=3) for one in series], more_keys=level_keys,
        gaps=absent(panel, series, "no ports"),
    )  # fmt: skip


link_utilisation = Picture(
    groups=alike(), page=_links,
    finding="With {{ 'TCP' if mptcp is none else most ~ ' subflows' }} "
    "{{ '%.0f' % (tcp if mptcp is none else mptcp) }} % of links are above half load"
    "{% if none not in (tcp, mptcp) %}, with TCP {{ '%.0f' % tcp }} %{% endif %}",
)  # fmt: skip
