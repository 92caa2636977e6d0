"""Lines: values in order, such as samples over time, with bands around them and levels to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from plots.kinds.axis import PLAIN, Axis
from plots.picture import Series
from plots.shared import kinds, style
from plots.shared.kinds import Dash, Look

Values = Sequence[float] | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Line:
    """Values at their places, joined as their look says. Marks are `size` points large, with a white face
    where `hollow`, and have `words` beside them. Deviations `std` are a band, or `whiskers`; upwards only on
    a logarithmic axis, where one as large as its mean has no lower end. `step` is Matplotlib's `pre` or
    `post` for values that hold between places. If `share`, values are shares of the plot's height."""

    x: Values
    y: Values
    look: Look
    width: float = 1.4
    size: float = 0.0
    step: Literal["", "pre", "post"] = ""
    hollow: bool | Sequence[bool] = False
    alpha: float = 1.0
    words: Sequence[str] = ()
    std: Values | None = None
    whiskers: bool = False
    share: bool = False
    every: Any = None
    """Matplotlib's `markevery`: at which values marks are."""

    def draw(self, axes: Axes, above: int, log: bool) -> None:
        look: dict[str, Any] = {"color": self.look.colour, "alpha": self.alpha, "zorder": 3 + above / 100}
        if self.size:
            look |= {"marker": self.look.marker, "ms": self.size, "markevery": self.every}
        steps: dict[str, Any] = {"drawstyle": f"steps-{self.step}"} if self.step else {}
        if self.share:
            steps |= {"transform": axes.get_xaxis_transform(), "clip_on": False}
        axes.plot(
            self.x, self.y, ls=self.look.dash or "", lw=self.width, label=self.look.label, **look, **steps
        )
        if self.std is not None:
            mean, std = np.asarray(self.y), np.asarray(self.std)
            ends = mean if log else np.maximum(mean - std, 0), mean + std
            if self.whiskers:
                axes.vlines(self.x, *ends, color=style.FAINT, lw=0.5, zorder=4)
            else:
                single = 2 if len(mean) == 1 else 0
                axes.fill_between(
                    self.x, *ends, color=self.look.colour, alpha=0.25, lw=single, step=self.step or None
                )
        hollow = np.broadcast_to(self.hollow, len(self.x))
        if self.size and hollow.any():
            axes.plot(
                np.asarray(self.x)[hollow], np.asarray(self.y)[hollow], ls="", markerfacecolor="white", **look
            )
        for x, y, words in zip(self.x, self.y, self.words, strict=False):
            axes.annotate(words, (x, y), (6, -4), textcoords="offset points", va="top", fontsize=7.5)


@dataclass(frozen=True, eq=False)
class Band:
    """The area from `low` to `high`."""

    x: Values
    low: float | Values
    high: float | Values
    colour: str = style.GRID

    def draw(self, axes: Axes) -> None:
        axes.fill_between(self.x, self.low, self.high, color=self.colour, lw=0, zorder=1)


@dataclass(frozen=True)
class Level:
    """A value across the plot, with its name at the left or lower end; the axis need not reach it unless it
    `counts`. It is drawn below lines, or `above` them with a white outline."""

    value: float
    dash: Dash = "-"
    colour: str = style.FAINT
    width: float = 0.8
    name: str = ""
    vertical: bool = False
    counts: bool = False
    above: bool = False
    most: float = 1.0
    """Where it ends, as a share of the plot."""

    def draw(self, axes: Axes) -> None:
        line, before = axes.axvline if self.vertical else axes.axhline, axes.dataLim.frozen()
        drawn = line(self.value, 0, self.most, color=self.colour, ls=self.dash, lw=self.width)
        if self.above:
            drawn.set(zorder=6, path_effects=style.halo())
        if not self.counts:
            axes.dataLim.set(before)
        if self.name:
            where, along = (0, self.value), ("axes fraction", "data")
            axes.annotate(
                self.name, where[::-1] if self.vertical else where, (3, 2),
                xycoords=along[::-1] if self.vertical else along, textcoords="offset points", fontsize=7.5,
                color=self.colour, path_effects=style.halo(), zorder=6,
            )  # fmt: skip


def published(value: float) -> Level:
    """Return the level of what a paper or theory says."""
    return Level(value, style.PUBLISHED_DASH, "black", 1.5, counts=True, above=True)


@dataclass(frozen=True)
class Lines:
    """Lines over bands and levels. `shade` are the ends of a time in which something is down. Suspect axes
    are hatched. `named` puts a legend of the lines into the upper left corner."""

    lines: Sequence[Line]
    x: Axis = PLAIN
    y: Axis = PLAIN
    title: str = ""
    bands: Sequence[Band] = ()
    levels: Sequence[Level] = ()
    shade: tuple[float, float] | None = None
    hatched: bool = False
    named: bool = False
    faint: bool = False
    """Whether the title is grey, as of a part of another plot."""

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        for band in self.bands:
            band.draw(axes)
        for level in self.levels:
            level.draw(axes)
        for above, line in enumerate(self.lines):
            line.draw(axes, above, self.y.log)
        if self.shade is not None:
            axes.axvspan(*self.shade, color=kinds.SHADE, zorder=0)
        if self.hatched:
            style.hatch(axes)
        if self.title:
            axes.set_title(self.title, color=style.FAINT if self.faint else style.INK)
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")
        if self.named and self.lines:
            axes.legend(
                loc="upper left", ncols=3, fontsize=8, frameon=False, borderaxespad=0, borderpad=0.2,
                handlelength=1.3, columnspacing=1, handletextpad=0.4,
            )  # fmt: skip
