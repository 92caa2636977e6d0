"""Draw the charts of figures from stored points; `plots/` does not know how points are stored."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common import files
from common.errors import StoreError
from common.processes import side_by_side
from harness.claims.own_settings import OwnSettings
from harness.experiment import Figure
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model.result import Status, Table, under_test
from model.spec import RunSpec
from plots.shared.settings_folder import import_matplotlib, settings_folder

if TYPE_CHECKING:
    from plots.data import Level, Point


@dataclass(frozen=True)
class FigureCharts:
    """The charts of `figure` with these points, in folder `out`; the axes have the subflow counts `expected`,
    measured or not."""

    figure: Figure
    points: Sequence[PointResult]
    out: Path
    expected: Sequence[int] = ()


def draw(wanted: Sequence[FigureCharts]) -> dict[str, list[Path]]:
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


def _remove_others(wanted: FigureCharts, drawn: Sequence[Path]) -> None:
    """Remove the figure's charts in its folder that were not drawn now: a chart of settings that have another
    name now, or of points that are gone, would look current. Raises StoreError."""
    from plots.shared.saving import FORMATS  # noqa: PLC0415

    with files.storing(f"removing old charts in {wanted.out}"):
        for path in wanted.out.iterdir():
            is_chart = path.suffix[1:] in FORMATS and chart_of(path) in wanted.figure.charts
            if is_chart and path not in drawn:
                path.unlink()


def chart_of(path: Path) -> str:
    """Return the name of a file's chart: the first part of the file's name (plots/shared/naming.py)."""
    return path.stem.split("-", 1)[0]


def _charts(wanted: FigureCharts) -> list[Callable[[], list[Path]]]:
    if not wanted.points:
        return []
    with files.storing(f"creating {wanted.out}"):
        wanted.out.mkdir(parents=True, exist_ok=True)
    own = OwnSettings([wanted.figure])
    points = [loaded(judged, own.overrides(judged.spec)) for judged in wanted.points]
    levels = published_levels(wanted.figure.published, own)
    charts = map(wanted.figure.chart, wanted.figure.charts)
    expected, marks = wanted.expected, wanted.figure.marks
    return [
        functools.partial(chart.draw, points, wanted.out, expected=expected, levels=levels, marks=marks)
        for chart in charts
    ]


def loaded(judged: PointResult, overrides: tuple[str, ...] = ()) -> Point:
    """Return a point as charts take it, with the settings that it has instead of its figure's."""
    from plots.data import Point  # noqa: PLC0415

    return Point(
        spec=judged.spec,
        status=Status.OK if judged.as_intended else judged.status,
        hosts=judged.hosts,
        reasons=judged.reasons,
        overloads=judged.as_intended,
        overrides=overrides,
        flows=under_test(judged.flows),
        ports=judged.ports,
        metrics=judged.metrics,
        baseline_mbps=judged.baseline_mbps,
        goodput_pct=None if judged.only_transfers else judged.goodput_pct,
        only_transfers=judged.only_transfers,
        read_table=functools.partial(_table, judged),
    )


def _table(judged: PointResult, name: str) -> Table | None:
    """Return a sample table; print a message and return None for a damaged one, which costs its chart
    alone."""
    if name not in judged.samples:
        return None
    try:
        return judged.sample(name)
    except StoreError as error:
        _say_once(str(error))
        return None


@functools.cache
def _say_once(text: str) -> None:
    """Print each message once: several charts read one file."""
    print(f"refabric: {text}", file=sys.stderr)


def published_levels(known: Sequence[Published], own: OwnSettings) -> list[Level]:
    """Return the published numbers of a figure with these settings; each chart draws those of its
    quantities."""
    from plots.data import Level  # noqa: PLC0415

    def applies(row: Published, spec: RunSpec) -> bool:
        return not own.unlike(row, spec)

    return [
        Level(
            topology=p.topology,
            workload=p.workload.partition(":")[0],
            quantity=p.metric.quantity,
            subflows=p.subflows,
            relation=p.relation,
            value=p.value,
            k=p.k,
            paper=p.paper,
            source=p.source,
            algorithm=p.algorithm,
            shape=p.shape,
            applies=functools.partial(applies, p),
        )
        for p in known
    ]
