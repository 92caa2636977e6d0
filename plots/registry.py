"""Every chart there is: a new one is its module, with a `draw`, and a line here.

Importing this imports no matplotlib, which takes half a second: a chart does when it is drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plots.data import Level, PointSummary


@dataclass(frozen=True)
class Chart:
    """`name` is the module of `plots/` that draws it and leads its files' names; `title` says what it shows,
    `reading` how to read it, in two sentences."""

    name: str
    title: str
    reading: str

    def draw(
        self,
        points: Iterable[PointSummary],
        out: Path,
        *,
        expected: Sequence[int] = (),
        levels: Sequence[Level] = (),
    ) -> list[Path]:
        """Draw `points` into the folder `out` as SVG, PDF and PNG; the files written, [] where there is
        nothing to show.

        `expected` are subflow counts that belong on the axes even if no point has them; `levels` the
        published numbers to draw beside ours. Raises StoreError when `out` cannot be written.
        """
        module = importlib.import_module(f"plots.{self.name}")
        files: list[Path] = module.draw(points, out, expected=expected, levels=levels)
        return files


def _charts(*charts: Chart) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts}


CHARTS: dict[str, Chart] = _charts(
    Chart(
        "throughput",
        "Mean goodput by transport",
        "Each bar (or dot, one a seed) is the mean goodput of all flows under one transport, in percent of "
        "what one flow reaches alone on the same links. A dashed line is the published level; a hatched or "
        "hollow mark is a point that the machine could not carry, which tells of the machine and not of "
        "the transport.",
    ),
    Chart(
        "rank",
        "Goodput of every flow",
        "Each curve is one transport, its flows sorted from the slowest to the fastest. A flat and high "
        "curve is a fair and well used network; one that starts low has flows that share a link while "
        "others lie idle.",
    ),
)
