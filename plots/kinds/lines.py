"""Lines: what a series does over time, or any other values in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes

from harness.results.point_results import PointResult
from plots.kinds.axis import PLAIN, Axis
from plots.picture import Series, Subject
from plots.shared import kinds, style

Values = Sequence[float] | npt.NDArray[Any]
Line = tuple[Values, Values]


def fixed(x: Values, y: Values) -> Callable[[Sequence[PointResult]], Line]:
    """Return the function that gives these places and values, whatever the points."""
    return lambda _: (x, y)


@dataclass(frozen=True)
class Lines:
    """One line per series: the places and values that `line` returns for its points, or None.

    `step` is Matplotlib's `pre` or `post` for values that hold between places. `shade` are the ends of a time
    in which something is down, `published` values to compare with. Suspect axes are hatched.
    """

    line: Callable[[Sequence[PointResult]], Line | None]
    x: Axis = PLAIN
    y: Axis = PLAIN
    step: str = ""
    title: str = ""
    width: float = 1.4
    shade: tuple[float, float] | None = None
    series: Sequence[Series] | None = None
    hatched: bool = False

    def draw(self, axes: Axes, subject: Subject, first: bool) -> None:
        del first
        for one in subject.series if self.series is None else self.series:
            found = self.line(one.points)
            if found is not None:
                look: dict[str, Any] = {"drawstyle": f"steps-{self.step}"} if self.step else {}
                axes.plot(*found, color=one.look.colour, ls=one.look.dash, lw=self.width, **look)
        if self.shade is not None:
            axes.axvspan(*self.shade, color=kinds.SHADE, zorder=0)
        if self.hatched:
            style.hatch(axes)
        if self.title:
            axes.set_title(self.title)
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")
