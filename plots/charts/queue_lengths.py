"""Queue lengths: of every port over time (CS244 2013, figures 9, 10 and 12), as a distribution over ports and
time, and at the bottleneck under several transports (as Alizadeh et al., SIGCOMM 2010, figures 1 and 13).

Six hundred lines would be unreadable: bands show the length that 50 %, 90 % and 99 % of the queues do not
exceed, and the longest; the queues that are longest on average are drawn and named. The bottleneck is the
switch port that sent most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.quantities import QUEUE_PKTS_MAX
from harness.results.point_results import PointResult
from model.result import PortRow
from plots.data import Inputs, Panel, of_switch
from plots.kinds.axis import SHARES, Axis
from plots.kinds.lines import Band, Level, Line, Lines, published
from plots.picture import Page, Picture, Row, alike
from plots.shared import axis_labels, style
from plots.shared.kinds import JOINED, Floats, Look, by_transport, transport_label, transport_look

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Lengths:
    """`pkts[i, j]` is the length at `t_s[i]` of the queue of `ports[j]`; t_s counts from the opening of the
    measured window, the warm-up is negative."""

    point: PointResult
    ports: tuple[PortRow, ...]
    t_s: npt.NDArray[np.float64]
    pkts: npt.NDArray[np.int32]

    def only(self, where: Callable[[PortRow], bool]) -> Lengths:
        kept = [i for i, port in enumerate(self.ports) if where(port)]
        return Lengths(self.point, tuple(self.ports[i] for i in kept), self.t_s, self.pkts[:, kept])

    @property
    def of_switches(self) -> Lengths:
        """The lengths without the hosts' own queues."""
        return self.only(of_switch)

    @property
    def window(self) -> npt.NDArray[np.int32]:
        """The lengths of the measured window alone; all of them where no sample falls into it."""
        measured = self.t_s >= 0
        return self.pkts[measured] if measured.any() else self.pkts


def read(point: PointResult) -> Lengths | None:
    """Return the queue length of every port at every sampled instant; None where they were not sampled.

    Zeros are left out of the table, so that the ports come from the point and the instants from their own
    table; without that one, from the instants at which any queue was not empty.
    """
    table = point.read_table("queues")
    if table is None or not point.ports:
        return None
    times = point.read_table("queue_times")
    t_s = np.unique((table if times is None else times)["t_s"].astype(float))
    if not len(t_s):
        return None
    ports = tuple(sorted(point.ports, key=lambda port: port.port))
    pkts = np.zeros((len(t_s), len(ports)), np.int32)
    instants, timed = _places(t_s, table["t_s"].astype(float))
    columns, known = _places(np.array([port.port for port in ports]), table["port"].astype(int))
    both = timed & known
    pkts[instants[both], columns[both]] = table["pkts"][both]
    return Lengths(point, ports, t_s, pkts)


def _places(ordered: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the position of each value in `ordered`, and whether it is there."""
    found = np.searchsorted(ordered, values).clip(max=len(ordered) - 1)
    return found, ordered[found] == values


_MAX_ROWS, _MAX_BINS = 3, 160
_HEADROOM = 1.22
"""Height of the axes over the longest queue: room for the names of the worst queues."""
_BANDS = (
    (100, "#f0f0f0", "longest"),
    (99, "#dedede", "99 %"),
    (90, "#c4c4c4", "90 %"),
    (50, "#989898", "50 %"),
)
"""Percentile of the queues, its grey, and its name."""
_WORST_LINES = (("#000000", 1.2), ("#0072B2", 1.1), ("#CC79A7", 1.1))


def _bins(count: int, most: int = _MAX_BINS) -> npt.NDArray[np.int64]:
    """Return where each of at most `most` short intervals begins."""
    return np.unique(np.linspace(0, count, most, endpoint=False).astype(np.int64))


def _extremes(t_s: Floats, pkts: npt.NDArray[np.int32], starts: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    """Return a line through the shortest and the longest length of each interval."""
    both = [extreme.reduceat(pkts, starts) for extreme in (np.minimum, np.maximum)]
    return np.repeat(t_s[starts], 2), np.column_stack(both).ravel()


def _queues(panel: Panel, inputs: Inputs) -> Page | None:
    rows, absent, left_out = panel.first_of_each(_MAX_ROWS, _of_switches)
    if not rows:
        return None
    limit, points = panel.spec.link.queue_pkts, [row.point for row in rows]
    found = [] if limit else inputs.beside(panel, QUEUE_PKTS_MAX)
    levels = {level.subflows: [published(level.value)] for level in found}
    top = max(limit, 4.0, *(row.pkts.max() for row in rows), *(level.value for level in found))
    plots = [Row(1.55, [_over_ports(row, panel, float(top), levels)]) for row in rows]
    return Page(
        rows=[*plots[:-1], dataclasses.replace(plots[-1], x=axis_labels.SECONDS_OF_WINDOW)],
        about=style.subtitle(panel, f"{rows[0].pkts.shape[1]} switch queues over time"), points=points,
        settings=style.parameters(panel), numbers=queue_numbers(panel, points),
        notes=[
            "Left of the dotted line: warm-up." if any(row.t_s[0] < 0 for row in rows) else "",
            *style.choice(panel, points, left_out),
        ],
        keys=[
            *(Patch(color=grey, label=name) for _, grey, name in reversed(_BANDS)),
            *(Look("limit", style.INK, "").key(width=0.8) for _ in range(limit > 0)),
        ],
        more_keys=style.published_key(found, panel), gaps=style.absences(absent),
    )  # fmt: skip


def queue_numbers(panel: Panel, points: Sequence[PointResult]) -> dict[str, object]:
    """Return how many queues ever drop, or how long the longest gets where none has a limit."""
    if panel.spec.link.queue_pkts:
        dropping = [(p, f"{100 * np.mean([port.drops > 0 for port in _ports(p)]):.0f} %") for p in points]
        return {"dropping": style.with_transports(dropping)}
    longest = [(point, max(port.max_queue_pkts for port in _ports(point))) for point in points]
    values = [(p, f"{pkts} packets ({style.milliseconds(panel.delay_ms(pkts))})") for p, pkts in longest]
    return {"dropping": "", "longest": style.with_transports(values)}


def _ports(point: PointResult) -> list[PortRow]:
    return [port for port in point.ports if of_switch(port)]


def _of_switches(point: PointResult) -> Lengths | None:
    lengths = read(point)
    return lengths.of_switches if lengths and _ports(point) else None


queues = Picture(
    groups=alike(), page=_queues,
    finding="{% if dropping %}Queues that overflow: {{ dropping }}"
    "{% else %}Longest queue: {{ longest }}{% endif %}",
)  # fmt: skip


def _over_ports(row: Lengths, panel: Panel, top: float, levels: Mapping[int, Sequence[Level]]) -> Lines:
    """Return the plot of one transport: bands over all queues, and the longest on average by name."""
    t_s, pkts, limit, means = row.t_s, row.pkts, panel.spec.link.queue_pkts, row.window.mean(axis=0)
    starts = _bins(len(t_s))
    shares = np.percentile(pkts, [share for share, _, _ in _BANDS], axis=1)
    heights = zip(np.maximum.reduceat(shares, starts, axis=1), _BANDS, strict=True)
    dash = style.SUSPECT_DASH if row.point.suspect else "-"
    lines = [
        Line(*_extremes(t_s, pkts[:, port], starts), Look(_name(row.ports[port]), shade, "", dash), width)
        for port, (shade, width) in zip(np.argsort(-means, kind="stable"), _WORST_LINES, strict=False)
        if means[port] > 0
    ]
    warm_up = [Level(0, ":", style.INK, vertical=True, most=1 / _HEADROOM)] if t_s[0] < 0 < t_s[-1] else []
    y = Axis(
        axis_labels.QUEUE, low=0, high=_HEADROOM * top, ticks=_ticks(top, integer=True),
        fit=partial(_delays, panel=panel, top=top),
    )  # fmt: skip
    return Lines(
        lines, Axis(low=t_s[0], high=max(t_s[starts[-1]], t_s[0] + 1e-3)), y,
        f"{style.name(row.point)}: mean {row.window.mean():.1f} packets",
        [Band(t_s[starts], 0, height, grey) for height, (_, grey, _) in heights],
        [*warm_up, *([Level(limit, colour=style.INK)] if limit else []), *levels.get(row.point.subflows, ())],
        hatched=row.point.suspect, named=True,
    )  # fmt: skip


def _name(port: PortRow) -> str:
    return f"{port.node}\N{RIGHTWARDS ARROW}{port.peer}"


def _ticks(top: float, *, integer: bool) -> list[float]:
    return [tick for tick in MaxNLocator(4, integer=integer).tick_values(0, top) if 0 <= tick <= top]


def _delays(axes: Axes, panel: Panel, top: float) -> None:
    """Add the delay of a queue as a scale on the right."""
    seconds = panel.delay_ms(top) >= 2000
    unit_ms = panel.delay_ms(1) / (1000 if seconds else 1)
    right = axes.secondary_yaxis("right", functions=(partial(mul, unit_ms), partial(mul, 1 / unit_ms)))
    right.set_ylabel(f"delay ({'s' if seconds else 'ms'})")
    right.set_yticks(_ticks(top * unit_ms, integer=False))


_MAX_CURVES, _COLUMNS = 5, 3
_DIRECTIONS = ("host-edge", "edge-agg", "agg-core", "edge-host", "agg-edge", "core-agg")
"""The first row of charts is the way up, the second the way down."""


def _cdf(panel: Panel, _: Inputs) -> Page | None:
    rows, absent, left_out = panel.first_of_each(_MAX_CURVES, lambda p: read(p) if _ports(p) else None)
    if not rows:
        return None
    directions = _DIRECTIONS if {port.layer for row in rows for port in row.ports} >= {*_DIRECTIONS} else ()
    end = 1.03 * max(panel.spec.link.queue_pkts, *(int(row.of_switches.window.max()) for row in rows), 4)
    lines = [_share(row.of_switches, panel, end) for row in rows]
    plots = [
        Lines(
            [_share(row.only(partial(_is_of, layer=one)), panel, end) for row in rows],
            Axis(low=0, high=end, most_ticks=3, bare=n < _COLUMNS),
            Axis(low=0, high=102, ticks=(0, 50, 100), bare=n % _COLUMNS > 0),
            one.replace("-", " \N{RIGHTWARDS ARROW} "), faint=True,
        )
        for n, one in enumerate(directions)
    ]  # fmt: skip
    all_queues = Lines(lines, Axis(low=0, high=end, most_ticks=6), SHARES)
    points = [row.point for row in rows]
    longest = [(row.point, f"{quantile(row.of_switches, 99)} packets") for row in rows]
    return Page(
        rows=[
            Row(2.4, [all_queues], axis_labels.QUEUE, "queues this long or shorter (%)"),
            *(Row(0.85, plots[n : n + _COLUMNS]) for n in range(0, len(plots), _COLUMNS)),
        ],
        about=style.subtitle(panel, f"lengths of {len(_ports(points[0]))} switch queues"), points=points,
        numbers={"longest": style.with_transports([longest[0], *longest[1:][-1:]])},
        settings=style.parameters(panel), notes=style.choice(panel, points, left_out),
        keys=[line.look.key(size=line.size, width=line.width) for line in lines],
        gaps=style.absences(absent),
    )  # fmt: skip


queue_cdf = Picture(
    groups=alike(), page=_cdf, finding="99 % of the time a queue is no longer than {{ longest }}"
)


def _is_of(port: PortRow, layer: str) -> bool:
    return port.layer == layer


def quantile(of: Lengths, share_pct: float) -> int:
    """Return the shortest length that at least `share_pct` % of the samples do not exceed."""
    return int(np.percentile(of.window, share_pct, method="inverted_cdf"))


def _up_to(of: Lengths, end: float) -> tuple[Floats, Floats]:
    """Return lengths, and the share of samples in % that are no longer, up to the end of the axis."""
    share = 100 * np.cumsum(np.bincount(of.window.ravel())) / of.window.size
    return np.array([0, *range(len(share)), end]), np.array([0, *share, 100])


def _share(of: Lengths, panel: Panel, end: float) -> Line:
    n, tcp = of.point.subflows, of.point.subflows == 1
    x, y = _up_to(of, end)
    shown, few = style.thinned(len(x)), len(x) <= 20
    look = Look(style.transport(n), style.colour(n, max(panel.subflows)), "s" if tcp else "o")
    return Line(
        x[shown], y[shown], look.doubted(of.point.suspect), 2.2 if tcp else 1.5,
        3.6 if tcp else 2.6 if few else 0.0, "post", every=1 if few else (0.04, 0.115),
    )  # fmt: skip


_NEAR_S, _NEAR_THRESHOLDS = 2.0, 2.5
"""How much of the window, and up to how many thresholds, the magnified picture shows."""
_MOST_TRANSPORTS, _MORE_BINS = 4, 240
_LINEAR_PKTS = 10
"""The axis is linear up to here and logarithmic beyond, to show both a threshold and a full buffer."""


def queue(point: PointResult) -> Lengths | None:
    """Return the bottleneck's queue alone, in the measured window; None where queues were not sampled."""
    lengths = _of_switches(point)
    if lengths is None or not (lengths.t_s >= 0).any():
        return None
    busiest = max(lengths.ports, key=lambda port: port.tx_bytes)
    of, measured = lengths.only(lambda port: port is busiest), lengths.t_s >= 0
    return dataclasses.replace(of, t_s=of.t_s[measured], pkts=of.pkts[measured])


def _bottleneck(panel: Panel, _: Inputs) -> Page | None:
    groups = by_transport(panel)
    found = [next(filter(None, map(queue, group)), None) for group in groups]
    known = [one for one in found if one]
    rows, left_out = known[:_MOST_TRANSPORTS], known[_MOST_TRANSPORTS:]
    if not rows:
        return None
    points = [row.point for row in rows]
    thresholds = sorted({point.spec.link.ecn_pkts for point in points} - {0})
    top, end_s = max(4, *(int(row.pkts.max()) for row in rows)), max(float(row.t_s[-1]) for row in rows)
    plots = [_over_time(rows, end_s, 1.05 * top, thresholds)]
    if thresholds:
        near = _over_time(rows, min(_NEAR_S, end_s), _NEAR_THRESHOLDS * thresholds[-1], thresholds)
        title = f"the first {_NEAR_S:g} s, magnified"
        plots.append(dataclasses.replace(near, title=title, faint=True))
    distribution = Lines(
        [
            Line(*_up_to(row, 1.1 * top), transport_look(row.point), 1.6, step="post")
            for row in rows
        ],
        Axis(axis_labels.QUEUE, fit=partial(_both_scales, top=top)), SHARES,
        levels=[Level(pkts, ":", style.INK, vertical=True) for pkts in thresholds],
    )  # fmt: skip
    absent = [transport_label(group[0]) for group, one in zip(groups, found, strict=True) if one is None]
    others = "; ".join(transport_label(row.point) for row in left_out)
    marks = " or ".join(map(str, thresholds))
    return Page(
        rows=[
            *(Row(1.5, [plot], axis_labels.SECONDS_OF_WINDOW * (plot is plots[-1])) for plot in plots),
            Row(1.5, [distribution], y="no longer (% of time)"),
        ],
        about=style.subtitle(panel, f"queue at {_name(rows[0].ports[0])}"), points=points,
        numbers={"medians": [(transport_label(row.point), np.median(row.pkts)) for row in rows]},
        settings=style.parameters(dataclasses.replace(panel, points=tuple(points))),
        notes=[
            f"Dotted: queues mark from {marks} packets on." if marks else "",
            f"Not shown: {others}." if others else "",
            "Mb/s: goodput of all flows together.",
        ],
        keys=[line.look.key(width=line.width) for line in plots[0].lines],
        gaps=f"failed or not sampled: {'; '.join(absent)}" if absent else "",
    )  # fmt: skip


bottleneck = Picture(
    groups=alike(*JOINED), page=_bottleneck,
    finding="Median queue: {% for name, pkts in medians %}{{ '; ' if not loop.first }}"
    "{{ '%.0f' % pkts }} packets with {{ name }}{% endfor %}",
)  # fmt: skip


def _over_time(rows: Sequence[Lengths], end_s: float, top: float, thresholds: Sequence[int]) -> Lines:
    """Return a plot of the range of lengths of each short interval."""
    lines = []
    for row in rows:
        early, look = row.t_s <= end_s, transport_look(row.point)
        mbps = sum(flow.goodput_mbps for flow in row.point.under_test)
        values = _extremes(row.t_s[early], row.pkts[early], _bins(int(early.sum()), _MORE_BINS))
        lines.append(Line(*values, dataclasses.replace(look, label=f"{look.label}: {mbps:.1f} Mb/s"), 1.1))
    levels = [Level(pkts, ":", style.INK) for pkts in thresholds]
    return Lines(
        lines, Axis(low=0, high=end_s or 1.0), Axis(axis_labels.QUEUE, low=0, high=top), levels=levels
    )


def _both_scales(axes: Axes, top: int) -> None:
    axes.set_xscale("symlog", linthresh=_LINEAR_PKTS, linscale=1)
    ticks = [tick for tick in (0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if tick <= top]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0, 1.1 * top)
