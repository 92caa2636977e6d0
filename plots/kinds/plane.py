"""A plane: one mark per series by two of its numbers, with the intervals of both, and names beside marks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from plots.kinds.axis import PLAIN, Axis
from plots.kinds.curves import Number
from plots.picture import Series
from plots.shared import kinds, places, style


@dataclass(frozen=True)
class Plane:
    """A mark per series at `across` and `up` of its points.

    Marks of suspect points are hollow; where `is_hollow` says something else with hollow marks, a question
    mark stands beside them. `size_pt` are the axes' width and height in points, for names beside marks."""

    across: Number
    up: Number
    x: Axis = PLAIN
    y: Axis = PLAIN
    title: str = ""
    title_size: float = style.TITLE_SIZE
    margins: tuple[float, float] | None = None
    series: Sequence[Series] | None = None
    is_hollow: Callable[[Series], bool] | None = None
    size_pt: tuple[float, float] | None = None

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del first
        named: list[tuple[str, kinds.Mean, kinds.Mean]] = []
        for one in all_series if self.series is None else self.series:
            x, y = self.across(one.points), self.up(one.points)
            if x is None or y is None:
                continue
            if self.is_hollow is not None:
                if x.hollow or y.hollow:
                    kinds.write(axes, "?", x.value, y.value)
                x, y = (dataclasses.replace(of, hollow=self.is_hollow(one)) for of in (x, y))
            kinds.mark(axes, x, y, one.look)
            named.append((one.name, x, y))
        if self.margins is not None:
            axes.margins(*self.margins)
        if self.title:
            axes.set_title(self.title, fontsize=self.title_size)
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")
        if self.size_pt is not None:
            places.label(axes, named, self.size_pt)
