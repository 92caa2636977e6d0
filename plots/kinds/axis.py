"""A horizontal or vertical axis of a plot: its label with unit, scale, limits and ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from plots.shared import style


@dataclass(frozen=True)
class Axis:
    """What a plot's axis shows. Without limits Matplotlib chooses them.

    `room` is the end of the axis relative to the largest value on it; `at_values` puts a tick at every value
    of the horizontal axis, `words` names them. `most_ticks` are whole numbers. `fit` sets what remains.
    """

    label: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    room: float | None = None
    ticks: Sequence[float] | None = None
    at_values: bool = False
    words: Mapping[float, str] | None = None
    most_ticks: int | None = None
    size: float | None = None
    """Of the label, in points."""
    tick_size: float | None = None
    fit: Callable[[Axes], object] | None = None

    def apply(self, axes: Axes, name: str, values: Sequence[float] = ()) -> None:
        """Set the axis `x` or `y` of the axes; `values` are the places of what was drawn along it."""
        axis = axes.xaxis if name == "x" else axes.yaxis
        if self.log:
            style.plain_log(axis)
        ticks = sorted(set(values)) if self.at_values else self.ticks
        if ticks is not None:
            words = self.words or {}
            axis.set_ticks(list(ticks), [words.get(tick, f"{round(tick, 2):g}") for tick in ticks])
            axis.set_minor_locator(NullLocator())
        if self.most_ticks:
            axis.set_major_locator(MaxNLocator(self.most_ticks, integer=True))
        high = self.high
        if self.room is not None:
            high = self.room * (axes.dataLim.x1 if name == "x" else axes.dataLim.y1) or 1.0
        low_now, high_now = axes.get_xlim() if name == "x" else axes.get_ylim()
        if self.low is not None or high is not None:
            ends = low_now if self.low is None else self.low, high_now if high is None else high
            axes.set(**{f"{name}lim": ends})
        if self.label:
            axis.set_label_text(self.label, {"fontsize": self.size or style.LABEL_SIZE})
        if self.tick_size:
            axis.set_tick_params(labelsize=self.tick_size)
        if self.fit is not None:
            self.fit(axes)


PLAIN = Axis()
FROM_ZERO = Axis(low=0)
