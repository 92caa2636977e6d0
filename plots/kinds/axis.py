"""A horizontal or vertical axis of a plot: its label with unit, scale, limits and ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from plots.shared import style


@dataclass(frozen=True)
class Axis:
    """What a plot's axis shows. Without limits Matplotlib chooses them.

    `room` is the end of the axis relative to the largest value on it; the axis always `covers` these two
    values. `at_values` puts a tick at every value of the horizontal axis, `words` names them. `most_ticks`
    are whole numbers. `fit` sets what remains.
    """

    label: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    room: float | None = None
    covers: tuple[float, float] | None = None
    ticks: Sequence[float] | None = None
    at_values: bool = False
    words: Mapping[float, str] | None = None
    most_ticks: int | None = None
    bare: bool = False
    """Without the words of ticks, as above an axis that has them."""
    grid: bool = False
    size: float | None = None
    """Of the label, in points."""
    tick_size: float | None = None
    fit: Callable[[Axes], object] | None = None

    def apply(self, axes: Axes, name: str, values: Sequence[float] = ()) -> None:
        """Set the axis `x` or `y` of the axes; `values` are the places of what was drawn along it."""
        axis = axes.xaxis if name == "x" else axes.yaxis
        if self.log:
            if None not in (self.low, self.high):  # before the scale, which may not begin and end alike
                axes.set(**{f"{name}lim": (self.low, self.high)})
            style.plain_log(axis)
        ticks = sorted(set(values)) if self.at_values else self.ticks
        if ticks is not None:
            words = self.words or {}
            axis.set_ticks(list(ticks), [words.get(tick, f"{round(tick, 2):g}") for tick in ticks])
            axis.set_minor_locator(NullLocator())
        if self.most_ticks:
            axis.set_major_locator(MaxNLocator(self.most_ticks, integer=True))
        low_now, high_now = axes.get_xlim() if name == "x" else axes.get_ylim()
        low = low_now if self.low is None else self.low
        high = high_now if self.high is None else self.high
        if self.room is not None:
            most = axes.dataLim.x1 if name == "x" else axes.dataLim.y1
            high = self.room * most if most and math.isfinite(most) else 1.0
        if self.covers is not None:
            low, high = min(low, self.covers[0]), max(high, self.covers[1])
        if (low, high) != (low_now, high_now):
            axes.set(**{f"{name}lim": (low, high)})
        if self.label:
            axis.set_label_text(self.label, {"fontsize": self.size or style.LABEL_SIZE})
        if self.tick_size:
            axis.set_tick_params(labelsize=self.tick_size)
        if self.log and ticks is None:
            axis.set_major_locator(LogLocator(subs=_steps(high / low), numticks=20))
        if self.bare:
            axis.set_tick_params(labelbottom=False, labelleft=False)
        if self.grid:
            axis.grid(color=style.GRID, linewidth=0.8)
        if self.fit is not None:
            self.fit(axes)


def _steps(ratio: float) -> Sequence[float]:
    """Return where ticks of a logarithmic axis stand in each decade, from the ratio of its ends."""
    if ratio < 4:
        return 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0
    if ratio < 10:
        return 1.0, 1.5, 2.0, 3.0, 5.0, 7.0
    return (1.0, 2.0, 5.0) if ratio < 50 else (1.0, 3.0) if ratio < 1000 else (1.0,)


PLAIN = Axis()
FROM_ZERO = Axis(low=0)
SHARES = Axis(low=0, high=102, ticks=range(0, 101, 25))
"""Of 0 to 100 %."""
