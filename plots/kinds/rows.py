"""Rows: one mark per series and row of names, with its interval, or one bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from harness.metrics.published import Published
from harness.results.point_results import PointResult
from plots.data import Panel, good
from plots.kinds.axis import PLAIN, Axis
from plots.kinds.curves import Number
from plots.picture import Series
from plots.shared import kinds, style
from plots.shared.kinds import Look

RowPoints = Mapping[str, Sequence[PointResult]]
"""The points of each row, by its name, from the top down."""


@dataclass(frozen=True)
class Rows:
    """A row for each of `rows`, in it a mark per series: `number` of the points that are in both.

    Without series a row has one mark, with the look that `look_of` returns for its name. `words` writes the
    value beside a mark, with a question mark if it is suspect. `bars` draws bars, `stems` lines from 1.
    `published` are values of a row, hollow if only recalled, which are diamonds.
    `line` is a value to compare with, `level` another, dashed, with its colour; `apart` is the width of a row
    that its marks take. Grey lines are at the places `ruled`.
    """

    rows: RowPoints
    number: Number
    x: Axis = PLAIN
    title: str = ""
    line: float | None = None
    published: Mapping[str, Sequence[Published]] = field(default_factory=dict)
    words: str = ""
    bars: bool = False
    stems: bool = False
    apart: float = 0.6
    size: float = 6.0
    name_size: float = 8.0
    ruled: Sequence[float] = ()
    level: tuple[float, str] | None = None
    margin: float | None = None
    title_size: float = style.TITLE_SIZE
    look_of: Callable[[str], Look] | None = None
    series: Sequence[Series] | None = None

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        series = all_series if self.series is None else self.series
        for y, (name, points) in enumerate(self.rows.items()):
            if self.look_of is not None:
                beside = self.published.get(name, ())
                self._mark(axes, y, self.look_of(name), points, [level.value for level in beside])
                for level in beside:
                    key = published_mark(level)
                    axes.plot(level.value, y, zorder=6, path_effects=style.halo(), **key)
                continue
            for number, one in enumerate(series):
                own = [point for point in points if any(point is each for each in one.points)]
                place = y + kinds.beside(number, len(series), self.apart)
                self._mark(axes, place, dataclasses.replace(one.look, dash=""), own)
        kinds.rows(axes, list(self.rows), named=first, size=self.name_size)
        for ruled in self.ruled:
            axes.axhline(ruled, color=style.GRID, lw=0.8, zorder=0)
        if self.level is not None:
            axes.axvline(self.level[0], color=self.level[1], lw=0.8, ls="--", zorder=1)
        if self.margin is not None:
            axes.margins(x=self.margin)
        if self.line is not None:
            axes.axvline(self.line, color=style.FAINT, lw=0.8, zorder=1)
        if self.title:
            axes.set_title(self.title, fontsize=self.title_size)
        self.x.apply(axes, "x")

    def _mark(
        self, axes: Axes, y: float, look: Look, points: Sequence[PointResult], beside: Sequence[float] = ()
    ) -> None:
        found = self.number(points) if points else None
        if found is None:
            return
        doubt = any(point.suspect for point in good(points))
        if self.bars:
            kinds.bar(axes, y, found.value, 0.6, look.colour, doubt, horizontal=True)
        else:
            if self.stems:
                axes.plot([1, found.value], [y, y], color=look.colour, lw=1.2, alpha=0.5)
            kinds.mark(axes, dataclasses.replace(found, hollow=found.hollow or doubt), y, look, self.size)
        if self.words:
            text = self.words.format(found.value) + ("?" if doubt and not self.bars else "")
            end = max(found.value + found.half, *beside, 0.0)
            kinds.write(axes, text, end, y, self.name_size if self.bars else 7)


RECALLED = "recalled"
"""The source of a published value whose digits are only recalled."""


def published_mark(level: Published) -> dict[str, Any]:
    """Return the diamond of a published value, as properties of a line."""
    face = "white" if level.source == RECALLED else "black"
    return {"ls": "", "marker": "D", "ms": 5, "color": "black", "markerfacecolor": face}


def published_keys(levels: Sequence[Published], panel: Panel) -> list[Line2D]:
    """Return the legend of published values; those that are only recalled are hollow."""
    found = []
    for words in ("", f", {RECALLED}"):
        of = [level for level in levels if (level.source == RECALLED) == bool(words)]
        for key in style.published_key(of, panel):
            key.set(label=f"{key.get_label()}{words}", **published_mark(of[0]))
            found.append(key)
    return found
