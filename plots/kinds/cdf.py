"""Distributions: the share of a series' values that are no larger than the place on the axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from harness.results.point_results import PointResult
from plots.kinds.axis import PLAIN, Axis
from plots.picture import Series
from plots.shared import style


@dataclass(frozen=True)
class Cdf:
    """One curve per series, of the `values` of its points. Infinite values count and are never reached;
    `end` is how far the curves go on after their last value."""

    values: Callable[[Sequence[PointResult]], Iterable[float]]
    x: Axis = PLAIN
    y: str = "flows (%)"
    title: str = ""
    end: float | None = None

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del first
        for one in all_series:
            values = np.sort(np.fromiter(self.values(one.points), float))
            known = values[np.isfinite(values)]
            if not len(known):
                continue
            shown = style.thinned(len(known))
            x, share = known[shown], 100 * (shown + 1) / len(values)
            if self.end is not None:
                x, share = np.append(x, self.end), np.append(share, share[-1])
            axes.plot(x, share, color=one.look.colour, ls=one.look.dash, lw=one.look.width,
                      drawstyle="default" if self.end is None else "steps-post")  # fmt: skip
        Axis(self.y, low=0, high=102, ticks=range(0, 101, 25)).apply(axes, "y")
        if self.title:
            axes.set_title(self.title, fontsize=8.5)
        self.x.apply(axes, "x")
