"""Places for names beside marks, so that names cover no mark, no whisker and no other name.

All lengths are in points, counted from the lower left corner of the axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from plots.shared import style
from plots.shared.kinds import Mean

HEIGHT, PER_CHARACTER = 8.0, 3.7
"""Height, and width per character, of a name in 7.5-point type."""
_BESIDE = 7.0
_STEPS = (0.0, 9.0, -9.0, 16.0, -16.0, 24.0, -24.0, 33.0, -33.0)
_MARK, _WHISKER = 4.0, 2.5
_MISTAKEN, _FAR = 20.0, 0.1
"""Costs, as covered areas, of a name that is nearer to another mark than to its own, and of each point of
distance."""


@dataclass(frozen=True)
class Box:
    """A rectangle that names should not cover."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Return the area that both have in common."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, wide) * max(0.0, high)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class NamedMark:
    """A mark at (x, y) with whiskers of these half lengths, and its name."""

    name: str
    x: float
    y: float
    x_whisker: float = 0.0
    y_whisker: float = 0.0

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Return what a name may not cover: the mark and its whiskers."""
        x, y = self.x, self.y
        return (
            Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK),
            Box(x - self.x_whisker, y - _WHISKER, x + self.x_whisker, y + _WHISKER),
            Box(x - _WHISKER, y - self.y_whisker, x + _WHISKER, y + self.y_whisker),
        )

    def distance(self, x: float, y: float) -> float:
        return math.hypot(x - self.x, y - self.y)

    @property
    def candidates(self) -> Iterator[Box]:
        """Yield boxes for the name, right and left of the mark, the closest ones first."""
        width = PER_CHARACTER * len(self.name)
        for step in _STEPS:
            for left in (self.x + _BESIDE, self.x - _BESIDE - width):
                bottom = self.y + step - HEIGHT / 2
                yield Box(left, bottom, left + width, bottom + HEIGHT)


def places(spots: Sequence[NamedMark], size: tuple[float, float]) -> list[Box]:
    """Return a box for the name of each mark, on axes of this width and height."""
    axes = Box(0.0, 0.0, *size)
    taken = [box for spot in spots for box in spot.boxes]
    found: dict[int, Box] = {}
    for n in sorted(range(len(spots)), key=lambda n: -spots[n].y):
        others = [*spots[:n], *spots[n + 1 :]]
        found[n] = min(spots[n].candidates, key=lambda box: _cost(box, spots[n], others, taken, axes))
        taken.append(found[n])
    return [found[n] for n in range(len(spots))]


def _cost(
    box: Box, own: NamedMark, others: Sequence[NamedMark], taken: Sequence[Box], axes: Box
) -> tuple[float, float]:
    """Return the area outside the axes, which counts first, and what else is wrong with a place."""
    covered = sum(box.overlap(other) for other in taken)
    outside = max(0.0, box.area - box.overlap(axes))
    begins = box.left if box.left > own.x else box.right, (box.bottom + box.top) / 2
    distance = own.distance(*begins)
    mistaken = any(other.distance(*begins) < distance for other in others)
    return round(outside, 6), covered + _MISTAKEN * mistaken + _FAR * distance


def label(axes: Axes, of: Sequence[tuple[str, Mean, Mean]], size_pt: tuple[float, float]) -> None:
    """Write names beside the marks at their places, on axes of this width and height."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x_scale, y_scale = size_pt[0] / (high - low), size_pt[1] / (top - bottom)
    spots = [
        NamedMark(
            name, (x.value - low) * x_scale, (y.value - bottom) * y_scale, x.half * x_scale, y.half * y_scale
        )
        for name, x, y in of
    ]
    for spot, box in zip(spots, places(spots, size_pt), strict=True):
        x, side = (box.left, "left") if box.left > spot.x else (box.right, "right")
        axes.annotate(
            spot.name, (low + spot.x / x_scale, bottom + spot.y / y_scale),
            xytext=(x - spot.x, box.bottom + HEIGHT / 2 - spot.y), textcoords="offset points", ha=side,
            va="center", fontsize=7.5, color=style.INK,
        )  # fmt: skip
