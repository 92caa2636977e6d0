"""The kinds of plots that charts are made of: curves of means, rows of names, distributions, marks of two
engines, and published values. Each draws points, intervals and what is suspect in one way.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from harness.results.point_results import PointResult
from model import transports
from model.result import Status
from model.spec import FIFO
from model.words import words_at
from plots.data import MIN_SEEDS_FOR_INTERVAL, TRANSPORT, Panel, good, interval_pct
from plots.shared import style

Floats = npt.NDArray[np.float64]
Dash = Any  # matplotlib has no name for the type of its line styles
Key = TypeVar("Key")
Place = TypeVar("Place", bound=float)
SHADE = "#ececec"
"""Of a time in which something is down."""


@dataclass(frozen=True)
class Look:
    """How a series is drawn and what legends call it."""

    label: str
    colour: str
    marker: str = "o"
    dash: Dash = "-"
    width: float = 1.5
    """Of lines, in points."""

    def key(self, *, hollow: bool = False, size: float = 5.0, width: float = 0.0) -> Line2D:
        """Return the entry of a legend."""
        return Line2D(
            [], [], color=self.colour, marker=self.marker, ls=self.dash, label=self.label,
            lw=width or self.width,
            ms=size * (1.4 if self.marker == "*" else 1), markerfacecolor="white" if hollow else self.colour,
        )  # fmt: skip

    def doubted(self, doubt: bool) -> Look:
        """Return the look of suspect points, if there is a `doubt`: dashed, and named so."""
        if not doubt:
            return self
        return dataclasses.replace(self, label=f"{self.label} (suspect)", dash=style.SUSPECT_DASH)


@dataclass(frozen=True)
class Mean:
    """A mean with half its 95 % interval, 0 where there is none, and whether its mark is hollow."""

    value: float
    half: float = 0.0
    hollow: bool = False


def look_of(algorithm: str, dash: Dash = "-") -> Look:
    """Return the look of an algorithm's record (model/transports.py)."""
    look = transports.look(algorithm)
    return Look(transports.title(algorithm), look.colour, look.marker, dash)


def mean_of(
    values: Iterable[float | None], *, hollow: bool = False, least: int = MIN_SEEDS_FOR_INTERVAL
) -> Mean | None:
    """Return the mean of the values that are there, with an interval from `least` on; None without any."""
    known = [value for value in values if value is not None]
    return Mean(statistics.fmean(known), interval_pct(known, least) or 0.0, hollow) if known else None


def mean_over(points: Sequence[PointResult], value: Callable[[PointResult], float | None]) -> Mean | None:
    """Return the mean over the good points; over the suspect ones, hollow, where none is good."""
    chosen = good(points)
    return mean_of(map(value, chosen), hollow=any(point.suspect for point in chosen))


def grouped(points: Iterable[PointResult], key: Callable[[PointResult], Key]) -> dict[Key, list[PointResult]]:
    """Group points, in the order of first occurrence."""
    groups: dict[Key, list[PointResult]] = {}
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return groups


def mark(axes: Axes, x: float | Mean, y: float | Mean, look: Look, size: float = 6.0) -> None:
    """Draw one mark with the intervals of its coordinates; hollow if either is."""
    ends = [one if isinstance(one, Mean) else Mean(one) for one in (x, y)]
    hollow = any(end.hollow for end in ends)
    axes.errorbar(
        ends[0].value, ends[1].value, xerr=ends[0].half or None, yerr=ends[1].half or None, ls="",
        color=look.colour, marker=look.marker, ms=size * (1.4 if look.marker == "*" else 1), lw=1.3,
        elinewidth=1.3, capsize=2.5, zorder=4, markerfacecolor="white" if hollow else look.colour,
    )  # fmt: skip


def bar(
    axes: Axes, at: float, length: float, width: float, colour: str, doubt: bool, *, horizontal: bool = False
) -> None:
    """Draw a bar; hatched in `doubt`."""
    look: dict[str, Any] = {"color": colour}
    if doubt:
        look = {"color": "white", "edgecolor": colour, "hatch": style.HATCH, "linewidth": 1.2}
    (axes.barh if horizontal else axes.bar)(at, length, width, **look)


def seeds(
    axes: Axes,
    at: float,
    good: Sequence[float],
    doubtful: Sequence[float],
    colour: str,
    marker: str = "o",
    *,
    horizontal: bool = False,
) -> None:
    """Draw every seed as a dot beside the others, hollow if suspect, and the mean of the good ones as a line
    with its interval."""
    values = [*good, *doubtful]
    step = min(0.11, 0.5 / max(1, len(values)))
    for i, value in enumerate(values):
        place = at + step * (i - (len(values) - 1) / 2)
        axes.plot(
            *((value, place) if horizontal else (place, value)), marker=marker, ms=3.2, color=colour,
            markerfacecolor=colour if i < len(good) else "white", zorder=5,
        )  # fmt: skip
    if mean := mean_of(good):
        line = axes.vlines if horizontal else axes.hlines
        line(mean.value, at - 0.34, at + 0.34, color=colour, lw=1.8, zorder=4)
        if mean.half:
            x, y = (mean.value, at) if horizontal else (at + 0.38, mean.value)
            halves = (None, mean.half)[:: -1 if horizontal else 1]
            axes.errorbar(x, y, halves[1], halves[0], color=colour, capsize=2.5, lw=1.4, zorder=4)


def curve(
    axes: Axes, at: Mapping[Place, Mean | None], look: Look, size: float = 4.5, zorder: float = 3
) -> None:
    """Draw means by their place on the axis, joined by a line."""
    shown = {x: mean for x, mean in at.items() if mean is not None}
    if not shown:
        return
    x, y, halves = zip(*((x, mean.value, mean.half) for x, mean in shown.items()), strict=True)
    axes.errorbar(
        x, y, yerr=halves if any(halves) else None, color=look.colour, ls=look.dash, marker=look.marker,
        ms=size, lw=1.5, capsize=2.5, zorder=zorder,
    )  # fmt: skip
    hollow = [(x, mean.value) for x, mean in shown.items() if mean.hollow]
    if hollow:
        axes.plot(
            *zip(*hollow, strict=True), ls="", marker=look.marker, ms=size, color=look.colour,
            markerfacecolor="white", zorder=zorder + 1,
        )  # fmt: skip


def rows(axes: Axes, names: Sequence[str], *, named: bool = True, size: float = 8.0) -> None:
    """Make the vertical axis one of rows with names, from the top down."""
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_yticks(range(len(names)), list(names) if named else [""] * len(names), fontsize=size)
    axes.tick_params(axis="y", length=0)
    style.grid_of_rows(axes)


def beside(number: int, count: int, width: float = 0.6) -> float:
    """Return how far the mark of one of `count` series is off its place, so that none hides another."""
    return width * ((number + 0.5) / count - 0.5)


def write(axes: Axes, text: str, x: float, y: float, size: float = 7.5) -> None:
    """Write a value to the right of its mark."""
    axes.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=size, zorder=6,
        path_effects=style.halo(),
    )  # fmt: skip


def published(axes: Axes, value: float, at: float, reach: float = 0.45, *, vertical: bool = False) -> None:
    """Draw a published value as a dashed line over its place."""
    draw = axes.vlines if vertical else axes.hlines
    draw(
        value, at - reach, at + reach, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
        path_effects=style.halo(),
    )  # fmt: skip


def doubt_key(doubtful: bool, *, hatched: bool = False) -> list[Artist]:
    """Return the legend of what is suspect, if anything is."""
    if not doubtful:
        return []
    if hatched:
        return [Patch(facecolor="white", edgecolor=style.FAINT, hatch=style.HATCH, label="suspect")]
    return [Look("suspect", style.FAINT, dash="").key(hollow=True)]


def dashed_key(label: str) -> Line2D:
    """Return the legend of a dashed black line."""
    return Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=1.3, label=label)


JOINED = (*TRANSPORT, "link.ecn_pkts")
"""Fields in which points of one chart may differ."""


def by_transport(panel: Panel) -> list[list[PointResult]]:
    """Group the points by transport, good points first; drop-tail before ECN."""
    groups = grouped(
        panel.points,
        lambda p: (
            transports.rank(p.algorithm), p.subflows, p.spec.link.ecn_pkts, p.cc, p.spec.transport.algorithm
        ),
    )  # fmt: skip
    order = (Status.OK, Status.SUSPECT, Status.FAILED)
    return [
        sorted(groups[key], key=lambda point: (order.index(point.status), point.seed))
        for key in sorted(groups)
    ]


def transport_label(point: PointResult) -> str:
    """Return `TCP, drop-tail`, `TCP DCTCP, ECN`, `TCP, codel queues`."""
    return transport_look(point).label


def transport_look(point: PointResult) -> Look:
    """Return the look of the point's transport; lighter for plain TCP with ECN, to set it apart from
    drop-tail."""
    ecn, name = bool(point.spec.link.ecn_pkts), point.algorithm
    colour = transports.look(name).colour
    if ecn and name == transports.TCP:
        red, green, blue = ((1 + part) / 2 for part in to_rgb(colour))
        colour = to_hex((red, green, blue))
    title = transports.transport(point.cc, point.subflows, point.spec.routing)
    own = words_at(point.spec, "link.discipline") if point.spec.link.discipline != FIFO else ""
    queues = ", ".join(filter(None, ["ECN" if ecn else "" if own else "drop-tail", own]))
    return Look(f"{title}, {queues}", colour, "").doubted(point.suspect)
