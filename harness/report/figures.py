"""Draw the charts of figures from stored points."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from common import files
from common.processes import side_by_side
from harness.claims.own_settings import OwnSettings
from harness.load import FigureResults
from harness.results.point_results import PointResult
from model.result import Status
from plots.data import Inputs
from plots.shared.settings_folder import import_matplotlib, settings_folder


def draw(wanted: Sequence[FigureResults]) -> dict[str, list[Path]]:
    """Draw all charts, as many at a time as there are CPUs; return the files by figure. Raises StoreError."""
    drawn: dict[str, list[Path]] = {each.figure.name: [] for each in wanted}
    tasks: list[tuple[str, Callable[[], list[Path]]]] = []
    for each in wanted:
        tasks += [(each.figure.name, task) for task in _charts(each)]
    with settings_folder():
        if tasks:  # imported once, before this process is forked: Matplotlib takes half a second
            import_matplotlib()
            importlib.import_module("plots.shared.saving")
        found = side_by_side([task for _, task in tasks])
    for (name, _), paths in zip(tasks, found, strict=True):
        drawn[name] += paths
    for each in wanted:
        if each.points:
            _remove_others(each, drawn[each.figure.name])
    return drawn


def _remove_others(wanted: FigureResults, drawn: Sequence[Path]) -> None:
    """Remove the figure's charts in its folder that were not drawn now: a chart of settings that have another
    name now, or of points that are gone, would look current. Raises StoreError."""
    from plots.shared.saving import FORMATS  # noqa: PLC0415

    with files.storing(f"removing old charts in {wanted.folder}"):
        for path in wanted.folder.iterdir():
            is_chart = path.suffix[1:] in FORMATS and chart_of(path) in wanted.figure.charts
            if is_chart and path not in drawn:
                path.unlink()


def chart_of(path: Path) -> str:
    """Return the name of a file's chart: the first part of the file's name (plots/shared/naming.py)."""
    return path.stem.split("-", 1)[0]


def _charts(wanted: FigureResults) -> list[Callable[[], list[Path]]]:
    if not wanted.points:
        return []
    with files.storing(f"creating {wanted.folder}"):
        wanted.folder.mkdir(parents=True, exist_ok=True)
    own = OwnSettings([wanted.figure])
    inputs = Inputs(
        [as_drawn(judged, own) for judged in wanted.points],
        wanted.folder,
        wanted.expected,
        wanted.figure.published,
        wanted.figure.marks,
        applies=lambda level, spec: not own.unlike(level, spec),
    )
    charts = map(wanted.figure.chart, wanted.figure.charts)
    return [functools.partial(chart.draw, inputs) for chart in charts]


def as_drawn(judged: PointResult, own: OwnSettings) -> PointResult:
    """Return a point with the settings that it has instead of its figure's; it is ok if the machine lacked
    CPU time as the figure intends."""
    status = Status.OK if judged.as_intended else judged.status
    return dataclasses.replace(judged, status=status, overrides=own.overrides(judged.spec))
