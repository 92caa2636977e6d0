"""Pairs: one mark per flow by its values in two engines; on the diagonal both are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from plots.picture import Series
from plots.shared import style


@dataclass(frozen=True)
class Pairs:
    """The values of flows: `x` in one engine, `y` in the other, in one order.

    `corner` is written where `log` axes or linear ones leave room; `ticks` are those of both axes. Marks of
    suspect points are hollow, and the axes hatched where all are."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    limits: tuple[float, float]
    title: str = ""
    corner: str = ""
    log: bool = False
    ticks: Sequence[float] | None = None
    x_label: str = ""
    y_label: str = ""
    suspect: bool | Sequence[bool] = False
    title_size: float = 9.0

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        step = max(1, -(-len(self.x) // style.MOST_POINTS))
        look: dict[str, Any] = {"marker": ".", "ms": 3, "alpha": 0.6} if self.log else {
            "marker": "o", "ms": 3.2, "alpha": 0.75}  # fmt: skip
        suspect = np.broadcast_to(self.suspect, len(self.x))
        for doubt in (False, True):
            of = np.flatnonzero(suspect == doubt)[::step]
            axes.plot(
                np.asarray(self.x)[of], np.asarray(self.y)[of], ls="", color=self.colour, zorder=3,
                markerfacecolor="white" if doubt else self.colour, **look,
            )  # fmt: skip
        if suspect.all():
            style.hatch(axes)
        if self.log:
            style.plain_log(axes.xaxis)
            style.plain_log(axes.yaxis)
        axes.plot(self.limits, self.limits, color=style.FAINT, lw=0.8, zorder=1)
        axes.set(xlim=self.limits, ylim=self.limits)
        if self.log:  # a column is narrower than high
            for axis, subs in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 3.0))):
                few = (1.0, 2.0, 5.0) if self.limits[1] <= 10 else subs
                axis.set_major_locator(LogLocator(subs=few, numticks=20))
        if self.ticks is not None:
            axes.set(xticks=self.ticks, yticks=self.ticks)
        axes.set(xlabel=self.x_label, ylabel=self.y_label)
        axes.set_title(self.title, fontsize=self.title_size)
        place: dict[str, Any] = (
            {"x": 0.05, "y": 0.95, "va": "top"} if self.log else {"x": 0.97, "y": 0.03, "ha": "right"}
        )
        axes.text(
            s=self.corner, transform=axes.transAxes, fontsize=6.5 if self.log else 7.5, linespacing=1.1,
            path_effects=style.halo(), zorder=2, **place,
        )  # fmt: skip
