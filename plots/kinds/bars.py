"""Bars: values at places along the axis, such as transports, as bars or marks, beside published ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from harness.metrics.published import Published
from harness.results.point_results import PointResult
from plots.kinds.axis import PLAIN, Axis
from plots.picture import Series
from plots.shared import kinds, style
from plots.shared.kinds import Look

_LABEL = 0.055
"""Height of a line of text as a share of the optimum, roughly."""
BARS, SEEDS, DOTS, MEANS = "bars", "seeds", "dots", "means"


@dataclass(frozen=True)
class Repeats:
    """The values of good repetitions, and of suspect ones, that one mark shows."""

    look: Look
    good: Sequence[float]
    suspect: Sequence[float] = ()


def sample(
    look: Look, points: Iterable[PointResult], value: Callable[[PointResult], float | None]
) -> Repeats:
    """Return a value of each point that has one."""
    found = [(point.suspect, number) for point in points if (number := value(point)) is not None]
    return Repeats(look, *([number for of, number in found if of is doubt] for doubt in (False, True)))


def published(levels: Sequence[Published]) -> list[tuple[float, str]]:
    """Return published values and what is written above them: the paper, too, where there are several."""
    several = len({level.paper for level in levels}) > 1
    return [
        (level.value, f"{level.paper} {style.bound(level)}" if several else style.bound(level))
        for level in levels
    ]


@dataclass(frozen=True)
class Bars:
    """Repetitions beside each other at each of `places`, which has the names on the axis.

    `marks` are BARS of means, hatched if suspect; SEEDS, each a dot, with a line for the mean of the good
    ones; DOTS, faint ones with a marker for the mean; or MEANS alone. `levels` are published values at a
    place, with their words; `gaps` says what is missing there. `shown` writes means at the foot. With an
    `optimum` the vertical axis is one of goodput in percent.
    """

    places: Mapping[str, Sequence[Repeats]]
    marks: str = BARS
    y: Axis = PLAIN
    optimum: float | None = None
    levels: Mapping[str, Sequence[tuple[float, str]]] | None = None
    gaps: Mapping[str, str] | None = None
    shown: str = ""
    apart: float = 0.8
    line: float | None = None
    reach: float = 0.46

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        tops = []
        for x, (name, samples) in enumerate(self.places.items()):
            top = max((self._mark(axes, x, n, samples) for n in range(len(samples))), default=0.0)
            tops.append(self._levels(axes, x, top, (self.levels or {}).get(name, ())))
            self._gap(axes, x, (self.gaps or {}).get(name, ""), bool(samples))
        axes.set_xlim(-0.6, len(self.places) - 0.4)
        axes.set_xticks(range(len(self.places)), list(self.places))
        if self.line is not None:
            axes.axhline(self.line, color=style.FAINT, lw=0.8, zorder=1)
        if self.optimum is not None:
            style.percent_axis(axes, max(tops), self.optimum)
        self.y.apply(axes, "y")

    @property
    def _text(self) -> float:
        return _LABEL * (self.optimum or 0.0)

    def _mark(self, axes: Axes, x: int, number: int, samples: Sequence[Repeats]) -> float:
        """Draw a sample; return how high it and its text reach."""
        one, at = samples[number], x + kinds.beside(number, len(samples), self.apart)
        values, doubt = one.good or one.suspect, not one.good
        mean = kinds.mean_of(values, hollow=doubt)
        if mean is None:
            return 0.0
        ink = style.INK
        if self.marks == BARS:
            kinds.bar(axes, at, mean.value, 0.92 * self.apart / len(samples), one.look.colour, doubt)
            values, ink = [mean.value], style.INK if doubt else _readable_on(one.look.colour)
        elif self.marks == SEEDS:
            values = [*one.good, *one.suspect]
            kinds.seeds(axes, at, one.good, one.suspect, one.look.colour)
        else:
            if self.marks == DOTS:
                axes.plot(
                    [at] * len(values), values, ls="", marker="o", ms=2.2, color=one.look.colour, alpha=0.45,
                    zorder=3, clip_on=False,
                )  # fmt: skip
            kinds.mark(axes, at, mean, one.look)
        half = 0.0 if self.marks == BARS else mean.half
        highest = max(*values, mean.value + half)
        if self.shown and not (self.marks == SEEDS and doubt):
            lowest = min(*values, mean.value - half)
            highest = self._value(axes, at, self.shown.format(mean.value), lowest, highest, ink)
        return highest + (self._text / 2 if self.marks == SEEDS else 0)

    def _value(self, axes: Axes, at: float, words: str, low: float, high: float, ink: str) -> float:
        """Write a value at the foot, in a row with the others, or above a mark that lies so low; return how
        high mark and text reach."""
        at_foot = low > 2 * self._text
        text = axes.annotate(
            words, (at, 0 if at_foot else high), xytext=(0, 4 if at_foot else 2),
            textcoords="offset points", ha="center", va="bottom", color=ink if at_foot else style.INK,
            zorder=6,
        )  # fmt: skip
        if at_foot and ink == style.INK:
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
        return high if at_foot else high + self._text

    def _levels(self, axes: Axes, x: int, top: float, levels: Sequence[tuple[float, str]]) -> float:
        """Draw published values over their place, their words above them and above our marks; return how high
        they reach."""
        for value, _ in levels:
            kinds.published(axes, value, x, self.reach)
        words = [each for _, each in levels if each]
        if not words:
            return max(top, *(value for value, _ in levels), 0.0)
        foot = max(top, *(value for value, _ in levels))
        axes.annotate(
            "\n".join(words), (x, foot), xytext=(0, 3), textcoords="offset points", ha="center", va="bottom",
            fontsize=8, linespacing=1.1, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            zorder=6,
        )  # fmt: skip
        return foot + (0.3 + len(words)) * self._text

    def _gap(self, axes: Axes, x: int, words: str, beside: bool) -> None:
        """Write what is missing: upright in an empty place, small above the value where something is."""
        if words:
            axes.annotate(
                words, (x, 0), xytext=(0, 17 if beside else 4), textcoords="offset points", ha="center",
                va="bottom", rotation=90, fontsize=7.5 if beside else 9, color=style.FAINT,
            )  # fmt: skip


def _readable_on(colour: str) -> str:
    """Return black for a light bar, white for a dark one."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.6 else "white"
