"""The Python interface: run and load experiments as the command line does, and read results as arrays."""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib
import io
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

import topos
from common import processes
from common.errors import UsageError
from engines.emulation.sandbox import client
from engines.registry import SIMULATOR
from harness import load as loading
from harness.baseline import is_baseline
from harness.catalogue import Catalogue, additions, extended
from harness.cli.options import argv_of, parsed_parameters
from harness.cli.progress import PlainProgress, for_stream
from harness.cli.run import carry_out, how_to_continue, metrics_of, request_of
from harness.cli.run import run as run_command
from harness.compare.compare import experiments_in
from harness.experiment import Experiment, Figure
from harness.labels import label, shared
from harness.load import FigureResults
from harness.metrics.metrics import TABLES, Metric
from harness.metrics.summary_csv import COLUMNS, record
from harness.plan import session
from harness.report import figures, report
from harness.results import store
from harness.results.point_results import PointResult, judge
from harness.results.tables import Cell
from model.reasons import texts
from model.result import FlowRow, PortRow
from model.spec import RunSpec

Folder = str | os.PathLike[str]
Column = npt.NDArray[Any]
HEADS = ("point", "status", "goodput, Mb/s", "% of optimal", "Jain")
SHOWN_ROWS = 10
NO_PANDAS = "pandas is not installed: run `{} -m pip install pandas`, or use the arrays themselves"


class Columns(Mapping[str, Column]):
    """Named columns of equal length: `flows["goodput_mbps"].mean()`.

    `len(columns)` counts columns, as a mapping does; `columns.rows` counts rows.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of(cls, kind: type[Any], rows: Sequence[Any]) -> Columns:
        """Return the fields of dataclass rows as columns; without rows every column is empty."""
        names = [field.name for field in dataclasses.fields(kind)]
        return cls({name: np.array([getattr(row, name) for row in rows]) for name in names})

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"there is no column {name!r}: choose one of {', '.join(self._columns)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame. Raises UsageError if pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise UsageError(NO_PANDAS.format(sys.executable)) from error
        return pandas.DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"Columns({self.rows} rows: {', '.join(self._columns)})"

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        rows = zip(*(column[:SHOWN_ROWS].tolist() for column in self._columns.values()), strict=True)
        more = self.rows - SHOWN_ROWS
        note = f"<p>and {more} more rows</p>" if more > 0 else ""
        return html_table(list(self._columns), rows) + note


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table of escaped texts."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return html.escape("" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value))


class Samples(Mapping[str, Columns]):
    """The sample tables of a point: `samples["queues"]["pkts"]`. Each is read from disk when asked for."""

    def __init__(self, judged: PointResult) -> None:
        self._judged = judged

    def __getitem__(self, name: str) -> Columns:
        if name not in self._judged.samples:
            raise KeyError(f"there are no samples {name!r}: this point has {', '.join(self) or 'none'}")
        return Columns(self._judged.sample(name).columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._judged.samples)

    def __len__(self) -> int:
        return len(self._judged.samples)

    def __repr__(self) -> str:
        sizes = sorted((name, content.rows) for name, content in self._judged.samples.items())
        return f"Samples({', '.join(f'{name}: {rows} rows' for name, rows in sizes)})"


@dataclass(frozen=True)
class Point:
    """One point of an experiment: its spec, its status, and what it measured.

    `status` is `ok`, `suspect` or `failed`; `reasons` says why. Goodput is the mean over the flows, in Mb/s
    and in percent of `baseline_mbps`, one uncongested TCP flow; None where there is no such number.
    """

    experiment: str
    judged: PointResult
    own: tuple[Metric, ...] = ()
    """Metrics of a user's file."""
    axes: tuple[str, ...] = ()
    """Paths of the fields of the spec in which the points of its results differ; its label names them."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.judged.name

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.judged.path

    @property
    def label(self) -> str:
        """Its settings in words: `k=4 one_to_one, MPTCP 8 LIA, seed 1, simulated`."""
        return label(self.spec, self.axes)

    @property
    def spec(self) -> RunSpec:
        """Everything that determines its result."""
        return self.judged.spec

    @property
    def status(self) -> str:
        return self.judged.status.value

    @property
    def reasons(self) -> str:
        return texts(self.judged.reasons)

    @property
    def subflows(self) -> int:
        """Subflows per flow; 1 is plain TCP."""
        return self.spec.transport.subflows

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def is_baseline(self) -> bool:
        """Whether it is the uncongested flow that percentages refer to."""
        return is_baseline(self.spec)

    @property
    def goodput_mbps(self) -> float | None:
        return self.judged.goodput_mbps.mean if self.judged.goodput_mbps else None

    @property
    def goodput_pct(self) -> float | None:
        return self.judged.goodput_pct.mean if self.judged.goodput_pct else None

    @property
    def baseline_mbps(self) -> float | None:
        return self.judged.baseline_mbps

    @property
    def jain(self) -> float | None:
        """Jain's fairness index of the flows' goodputs."""
        return self.judged.jain

    @property
    def metrics(self) -> Mapping[str, float]:
        """What the engine recorded of the whole point, e.g. `late_p99_us`, the metrics of tables, e.g.
        `goodput_pct_min`, and those of a user's file."""
        read = {metric.name: metric.at(self.judged) for metric in (*TABLES, *self.own)}
        return {
            **self.judged.metrics,
            **{name: value for name, value in read.items() if value is not None},
        }

    @functools.cached_property
    def flows(self) -> Columns:
        """One row per flow (model/result.py, FlowRow); numbers that were not measured are nan."""
        return Columns.of(FlowRow, self.judged.flows)

    @functools.cached_property
    def ports(self) -> Columns:
        """One row per direction of a link (model/result.py, PortRow)."""
        return Columns.of(PortRow, self.judged.ports)

    @property
    def samples(self) -> Samples:
        """Tables over time, with `t_s` from the start of the measured window."""
        return Samples(self.judged)

    def record(self) -> dict[str, Cell | None]:
        """Return its row of summary.csv; None where it has no such number."""
        return record(self.experiment, self.judged, self.own)

    def __repr__(self) -> str:
        goodput = "no goodput" if self.goodput_mbps is None else f"{self.goodput_mbps:.4g} Mb/s"
        return f"<Point {self.label}: {self.status}, {goodput}>"

    def _repr_html_(self) -> str:
        """Return its settings and numbers as a table, for notebooks."""
        shown = [(name, value) for name, value in self.record().items() if value not in (None, "")]
        return html_table((self.label, ""), shown)


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
        return report.picture(self.svg, self.title)


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
        shown: Sequence[FigureResults],
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
        """Return the columns of summary.csv, one row per point, then those of own metrics, then the fields of
        the spec by their path (`link.delay_us`, `stack.min_rto_ms`)."""
        rows = [{**point.record(), **dict(_fields(point.spec))} for point in self.points]
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
                dataclasses.replace(
                    each,
                    points=tuple(judged for judged in each.points if judged.name in names),
                    folder=Path(folder) / each.figure.name,
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


def _fields(part: Any, at: str = "") -> Iterator[tuple[str, Cell]]:
    """Yield the path and the value of each field of a spec: what is neither number nor text as JSON."""
    for field in dataclasses.fields(part):
        value, path = getattr(part, field.name), f"{at}{field.name}"
        if dataclasses.is_dataclass(value):
            yield from _fields(value, f"{path}.")
        else:
            yield (
                path,
                value if isinstance(value, int | float | str) else json.dumps(msgspec.to_builtins(value)),
            )


def _array(values: Sequence[Any]) -> Any:
    """Return a column: missing numbers are nan, missing texts are empty."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else value for value in values])
    return np.array([np.nan if value is None else value for value in values])


def _chart(path: Path, figure: Figure) -> Chart:
    name = figures.chart_of(path)
    return Chart(name, figure.chart(name).title, path.read_text())


def run_points(
    catalogue: Catalogue, experiment: str, results: Folder, quiet: bool, options: Mapping[str, Any]
) -> Results:
    """Run the points that are not finished yet; return the points that were asked for.

    Raises RefabricError as the command does, and KeyboardInterrupt if it is interrupted.
    """
    client.separate()
    values = {**options, "results": os.fspath(results)}
    argv = [*argv_of(run_command, values), "--", experiment]
    asked = request_of(**parsed_parameters(run_command, argv, catalogue))
    progress = PlainProgress(io.StringIO()) if quiet else for_stream(sys.stderr)
    with processes.never_lost():
        ready, outcome = carry_out(asked, progress)
    if outcome.interrupted:
        raise KeyboardInterrupt(how_to_continue(outcome, ready.store.directory))
    found = loading.loaded(asked.experiment, asked.results, ready.plan, outcome.stored)
    broken = [str(error) for error in found.broken]
    folder = asked.results / asked.experiment.folder
    return _results(asked.experiment, folder, outcome.points, found.figures, broken)


ANY_NETWORK = "cs244-one-to-one"
"""The experiment that takes any network."""
SIZE = 4
"""The size of a network of `grid` that names none."""


def run_grid(
    catalogue: Catalogue, network: str, results: Folder, quiet: bool, options: Mapping[str, Any]
) -> Results:
    """Run the product of the options' values on a network, as `run_points` does. Raises RefabricError."""
    values = {"engine": SIMULATOR, **options}
    family = topos.TOPOLOGIES.get(topos.ALIASES.get(network, network))
    networks: list[str] = [network]
    if family is not None and not family.written:
        sizes = {p.name: values.pop(p.name) for p in family.parameters if p.name in values}
        sizes = {family.size.name: SIZE, **sizes}
        each = [[f"{name}={size}" for size in _several(value)] for name, value in sizes.items()]
        networks = [",".join([family.alias, *chosen]) for chosen in itertools.product(*each)]
    return run_points(catalogue, ANY_NETWORK, results, quiet, {**values, "topology": networks})


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple | range) else [value]


def load_results(
    catalogue: Catalogue, folder: Folder, experiment: str | None, added: Sequence[str] = ()
) -> Results:
    """Return all stored points of results/<experiment>, or of a results folder that holds one experiment.

    `experiment` names the experiment whose charts are drawn, if several share the folder; the files `added`
    have further metrics and charts. Raises UsageError for a folder without points.
    """
    path = _experiment_folder(Path(folder))
    chosen = _find(catalogue, path, experiment)
    chosen = chosen and extended(chosen, added)
    if chosen is None:
        found = store.scan(path)
        points, broken = judge(found.points), found.broken
        figures: tuple[FigureResults, ...] = ()
    else:
        plan = session.make_plan(chosen, {})
        loaded = loading.load(dataclasses.replace(chosen, folder=path.name), path.parent, plan)
        points, broken, figures = loaded.points, loaded.broken, loaded.figures
    if not points:
        why = f": {broken[0]}" if broken else ""
        raise UsageError(f"loading {folder}: no point there can be read{why}")
    more = [] if chosen else [of for file in added for of in additions(file) if isinstance(of, Metric)]
    return _results(chosen or path.name, path, points, figures, [str(error) for error in broken], more)


def _experiment_folder(path: Path) -> Path:
    """Return the folder of the one experiment at `path`. Raises UsageError."""
    if not path.is_dir():
        what = "it is a file" if path.exists() else "there is no such folder"
        raise UsageError(f"loading {path}: {what}; give results/<experiment>, e.g. results/cs244")
    path = path.resolve()
    held = experiments_in(path)
    if len(held) > 1:
        raise UsageError(
            f"loading {path}: it holds {len(held)} experiments ({', '.join(held)}); "
            f"name one, e.g. {path / held[0]}"
        )
    return path / held[0] if held else path


def _find(catalogue: Catalogue, path: Path, experiment: str | None) -> Experiment | None:
    """Return the experiment of a folder, by its name or else the first with this folder."""
    if experiment is not None:
        return catalogue.find(experiment)
    sharing = [each for each in catalogue if each.folder == path.name]
    return next((each for each in sharing if each.name == path.name), next(iter(sharing), None))


def _results(
    of: Experiment | str,
    folder: Path,
    points: Sequence[PointResult],
    figures: Sequence[FigureResults],
    broken: Sequence[str],
    more: Sequence[Metric] = (),
) -> Results:
    """Return the points of an experiment, or of a folder that belongs to no known experiment."""
    name, own = (of, tuple(more)) if isinstance(of, str) else (of.name, metrics_of(of))
    axes = shared([judged.spec for judged in points]).axes
    return Results(name, folder, [Point(name, judged, own, axes) for judged in points], figures, broken)
