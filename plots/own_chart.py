"""A chart that a user's file draws: a function from points to a matplotlib figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plots.data import Level, Point
from plots.registry import Chart


def _nothing(_points: Sequence[Point]) -> Any:
    return None


@dataclass(frozen=True)
class OwnChart(Chart):
    """A chart whose `function` returns a matplotlib.figure.Figure, or None where there is nothing to show."""

    function: Callable[[Sequence[Point]], Any] = field(default=_nothing, compare=False)

    def draw(
        self,
        points: Iterable[Point],
        out: Path,
        *,
        expected: Sequence[int] = (),
        levels: Sequence[Level] = (),
        marks: Sequence[float] = (),
    ) -> list[Path]:
        """Draw all points except the baselines into one chart; see `Chart.draw`."""
        from plots.shared import saving, style  # noqa: PLC0415

        del expected, levels, marks
        shown = [point for point in points if not point.is_baseline and not point.failed]
        with style.look():
            figure = self.function(shown) if shown else None
            return saving.save(figure, out, self.name) if figure is not None else []
