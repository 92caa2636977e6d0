"""The results of an experiment for a notebook: its points, a summary table, and its charts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from common.errors import UsageError
from harness.api.columns import Columns, html_table
from harness.api.points import Point
from harness.experiment import Figure
from harness.load import Shown
from harness.metrics.columns import COLUMNS
from harness.report import figures, svg
from harness.report.figures import Wanted

HEADS = ("point", "status", "goodput, Mb/s", "% of optimal", "Jain")


@dataclass(frozen=True)
class Chart:
    """A drawn chart: notebooks show it, and `save` writes it."""

    name: str
    title: str
    svg: str
    """The text of the picture's file."""

    def save(self, path: str | Path) -> Path:
        """Write the picture as an SVG file; return its path."""
        target = Path(path)
        target.write_text(self.svg)
        return target

    def __repr__(self) -> str:
        return f"<Chart {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        return svg.picture(self.svg, self.title)


class Charts(Sequence[Chart]):
    """The charts that `Results.plot` drew; notebooks show one below the other."""

    def __init__(self, drawn: Sequence[Chart]) -> None:
        self._drawn = tuple(drawn)

    @overload
    def __getitem__(self, index: int) -> Chart: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Chart]: ...
    def __getitem__(self, index: int | slice) -> Chart | Sequence[Chart]:
        return self._drawn[index]

    def __len__(self) -> int:
        return len(self._drawn)

    def __repr__(self) -> str:
        return f"<Charts {', '.join(chart.name for chart in self._drawn) or 'none'}>"

    def _repr_html_(self) -> str:
        return "".join(chart._repr_html_() for chart in self._drawn)


class Results(Sequence[Point]):
    """The points of an experiment in the order of its tables, baselines first.

    `broken` has one line for each damaged file, whose point is left out. `folder` holds the points.
    """

    def __init__(
        self,
        experiment: str,
        folder: Path,
        points: Sequence[Point],
        shown: Sequence[Shown],
        broken: Sequence[str],
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.points = tuple(points)
        self.broken = tuple(broken)
        self._shown = tuple(shown)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | Sequence[Point]:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    @property
    def measured(self) -> list[Point]:
        """The points without the baselines."""
        return [point for point in self.points if not point.is_baseline]

    def summary(self) -> Columns:
        """Return the columns of summary.csv, one row per point; own metrics are the last columns."""
        rows = [point.record() for point in self.points]
        names = list(rows[0]) if rows else COLUMNS
        return Columns({name: _array([row[name] for row in rows]) for name in names})

    def to_pandas(self) -> Any:
        """Return the summary as a pandas.DataFrame. Raises UsageError if pandas is not installed."""
        return self.summary().to_pandas()

    def plot(self, chart: str | None = None) -> Charts:
        """Draw the charts of the experiment's figures, or one of them by its name.

        Raises UsageError for a chart that the experiment does not have, and if nothing can be drawn.
        """
        if not self._shown:
            raise UsageError(
                f"{self.folder}: refabric has no experiment of this name, so its charts are not known; if a "
                f'file defines it, name the file: refabric.load("{self.folder}", experiment="./mine.py")'
            )
        known = list(dict.fromkeys(name for each in self._shown for name in each.figure.charts))
        if chart is not None and chart not in known:
            raise UsageError(f"chart {chart}: {self.experiment} has {', '.join(known) or 'none'}")
        names = {point.name for point in self.points}
        with tempfile.TemporaryDirectory() as folder:
            wanted = [
                Wanted(
                    each.figure,
                    [judged for judged in each.points if judged.point.name in names],
                    Path(folder) / each.figure.name,
                )
                for each in self._shown
            ]
            drawn = figures.draw(wanted)
            charts = [
                _chart(path, each.figure)
                for each in self._shown
                for path in drawn[each.figure.name]
                if path.suffix == ".svg"
            ]
        chosen = [each for each in charts if chart in (None, each.name)]
        if not chosen:
            raise UsageError(f"nothing to draw in {self.folder}: its points lack the measurements for it")
        return Charts(chosen)

    def __repr__(self) -> str:
        return f"<Results {self.experiment}: {len(self.points)} points in {self.folder}>"

    def _repr_html_(self) -> str:
        """Return one row per point, for notebooks."""
        rows = [(p.label, p.status, p.goodput_mbps, p.goodput_pct, p.jain) for p in self.points]
        return html_table(HEADS, rows)


def _array(values: Sequence[Any]) -> Any:
    """Return a column: missing numbers are nan, missing texts are empty."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else value for value in values])
    return np.array([np.nan if value is None else value for value in values])


def _chart(path: Path, figure: Figure) -> Chart:
    name = path.stem.split("-", 1)[0]
    return Chart(name, figure.chart(name).title, path.read_text())
