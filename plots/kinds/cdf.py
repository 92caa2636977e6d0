"""Distributions: the share of a series' values that are no larger than the place on the axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from harness.results.point_results import PointResult
from plots.kinds.axis import PLAIN, Axis
from plots.picture import Subject
from plots.shared import kinds


@dataclass(frozen=True)
class Cdf:
    """One curve per series, of the `values` of its points. Infinite values count and are never reached;
    `end` is how far the curves go on after their last value."""

    values: Callable[[Sequence[PointResult]], Iterable[float]]
    x: Axis = PLAIN
    y: str = "flows (%)"
    title: str = ""
    end: float | None = None

    def draw(self, axes: Axes, subject: Subject, first: bool) -> None:
        del first
        for one in subject.series:
            values = list(self.values(one.points))
            known = [value for value in values if math.isfinite(value)]
            if known:
                style = {} if self.end is None else {"drawstyle": "steps-post"}
                kinds.cdf(axes, known, one.look, len(values), self.end, **style)
        kinds.share_axis(axes, self.y)
        if self.title:
            axes.set_title(self.title, fontsize=8.5)
        self.x.apply(axes, "x")
