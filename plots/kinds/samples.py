"""Repetitions: the repetitions of every row of names, as a bar or as a dot each, with their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from plots.kinds.axis import PLAIN, Axis
from plots.kinds.bars import Repeats
from plots.picture import Series
from plots.shared import kinds, style


@dataclass(frozen=True)
class Repetitions:
    """A row for each of `rows`, from the top down, with its samples over each other: a dot for each
    repetition and a line for the mean of the good ones, or bars, hatched if suspect.

    `shown` writes the mean of each sample: over it, or at the right edge, with its interval if `spread`.
    `levels` are published values of a row, `gaps` says what is missing in one; `line` is a value to compare
    with. `slowest` are the places of diamonds.
    """

    rows: Mapping[str, Sequence[Repeats]]
    x: Axis = PLAIN
    shown: Sequence[str] = ("{:.1f}",)
    bars: bool = False
    at_edge: bool = False
    spread: bool = False
    levels: Mapping[str, Sequence[float]] | None = None
    gaps: Mapping[str, str] | None = None
    line: float | None = None
    slowest: Mapping[str, float] | None = None
    name_size: float = 9.0

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series
        kinds.rows(axes, list(self.rows), named=first, size=self.name_size)
        for y, (name, samples) in enumerate(self.rows.items()):
            for sample, shown in zip(samples, self.shown, strict=True):
                self._sample(axes, y, sample, shown)
            for value in (self.levels or {}).get(name, ()):
                kinds.published(axes, value, y, vertical=True)
            if slowest := (self.slowest or {}).get(name):
                axes.plot(slowest, y, "d", ms=5, color=style.INK, markerfacecolor="white", mew=0.9, zorder=6)
            if gap := (self.gaps or {}).get(name):
                axes.annotate(gap, (0, y), (4, 0), textcoords="offset points", va="center", color=style.FAINT)
        if self.line is not None:
            axes.axvline(self.line, color=style.FAINT, lw=0.8, zorder=1)
        self.x.apply(axes, "x")

    def _sample(self, axes: Axes, y: int, of: Repeats, shown: str) -> None:
        mean = kinds.mean_of(of.good) or kinds.mean_of(of.suspect)
        if mean is None:
            return
        if self.bars:
            kinds.bar(axes, y, mean.value, 0.72, of.look.colour, not of.good, horizontal=True)
        else:
            kinds.seeds(axes, y, of.good, of.suspect, of.look.colour, of.look.marker, horizontal=True)
        spread = self.spread and of.good and mean.half
        words = shown.format(mean.value) + (
            f" \N{PLUS-MINUS SIGN} {shown.format(mean.half)}" if spread else ""
        )
        if shown and self.at_edge:
            axes.annotate(
                words + ("" if of.good else "?"), (1, y), (3, 0), xycoords=("axes fraction", "data"),
                textcoords="offset points", va="center", fontsize=8,
                color=style.INK if of.good else style.FAINT,
            )  # fmt: skip
        elif shown and of.good:
            axes.annotate(
                words, (mean.value, y - 0.34), ha="center", va="bottom", fontsize=7, color=of.look.colour,
                zorder=6, path_effects=style.halo(),
            )  # fmt: skip
