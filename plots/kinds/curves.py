"""Curves: the mean of every series by a value of the points, such as the load or the number of subflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from harness.results.point_results import PointResult
from plots.kinds.axis import PLAIN, Axis
from plots.picture import Series
from plots.shared import kinds, style
from plots.shared.kinds import Look, Mean

Number = Callable[[Sequence[PointResult]], Mean | None]
"""Returns the mean of points that differ in seeds alone, with its interval, or None without a value."""


def mean(value: Callable[[PointResult], float | None]) -> Number:
    """Return the function that takes the mean of a point's value over good seeds, over suspect ones (hollow)
    where none is good."""
    return lambda points: kinds.mean_over(points, value)


@dataclass(frozen=True)
class Curves:
    """One curve per series: `number` of its points at each place of the horizontal axis, `over`.

    `series` are drawn instead of those of the chart, `alike` draws all marks of a series with one look.
    `means` are, too: looks with their means by place. A series that `is_level` is the same everywhere and
    becomes a dashed line. `line` is a value to compare with, `published` are levels; `within` is half the
    height of a grey band around 0.
    """

    number: Number = lambda _: None
    over: Callable[[PointResult], float] = lambda _: 0.0
    x: Axis = PLAIN
    y: Axis = PLAIN
    title: str = ""
    line: float | None = None
    size: float = 4.5
    published: Sequence[float] = ()
    within: float | None = None
    means: Sequence[tuple[Look, Mapping[float, Mean | None]]] = ()
    series: Sequence[Series] | None = None
    is_level: Callable[[Series], bool] = lambda _: False
    level_width: float = 1.2
    title_size: float = style.TITLE_SIZE

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del first
        places: list[float] = []
        for above, one in enumerate(all_series if self.series is None else self.series):
            number = one.number or self.number
            at = {x: number(of) for x, of in sorted(kinds.grouped(one.points, self.over).items())}
            places += at
            if self.is_level(one):
                self._level(axes, next(filter(None, at.values()), None), one.look)
            else:
                kinds.curve(axes, at, one.look, self.size, zorder=3 + above / 100)
        for above, (look, by_place) in enumerate(self.means):
            kinds.curve(axes, by_place, look, self.size, zorder=3 + above / 100)
        if self.within is not None:
            axes.axhspan(-self.within, self.within, color=style.GRID, alpha=0.6, lw=0, zorder=0)
        for value in self.published:
            axes.axhline(value, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=6,
                         path_effects=style.halo())  # fmt: skip
        if self.line is not None:
            axes.axhline(self.line, color=style.FAINT, lw=0.8, zorder=1)
        if self.title:
            axes.set_title(self.title, fontsize=self.title_size)
        self.x.apply(axes, "x", places)
        self.y.apply(axes, "y")

    def _level(self, axes: Axes, at: Mean | None, look: Look) -> None:
        if at is not None:
            axes.axhline(at.value, color=look.colour, lw=self.level_width, ls=look.dash)
