"""`refabric report`: one self-contained HTML page about an experiment's stored points.

The page contains its charts and its styles. It has no script and fetches nothing. It is made from
stored results only, so it can be made again at any time, and from part of them.
"""

from __future__ import annotations

import datetime
import errno
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from common import files
from common.errors import StoreError, UsageError
from common.privileges import check_private
from harness.claims.claims import once
from harness.claims.own_settings import OwnSettings
from harness.claims.verdicts import NOT_MEASURED, Verdict, place
from harness.experiment import Experiment
from harness.load import Loaded, Shown
from harness.metrics.published import known_as
from harness.report import claims as claimed
from harness.report import figures, words
from harness.report import points as parts
from harness.report.svg import MAX_BYTES, picture
from harness.results.provenance import collect
from harness.watch import page as watching
from plots.registry import Chart

if TYPE_CHECKING:
    from jinja2 import Template

REPORT = "report.html"
MARK = b'<meta name="generator" content="refabric">'
"""A line of every page, by which refabric recognises it."""
MAX_PAGE_BYTES = 1 << 30
TEMPLATES = Path(__file__).parent / "templates"

Charts = Mapping[str, Sequence[Path]]
"""The files drawn for each figure, by its name."""


@dataclass(frozen=True)
class Drawn:
    """One chart of the page."""

    picture: Markup
    reading: str


@dataclass(frozen=True)
class Part:
    """One figure as the page shows it. `same_as` names an earlier figure with the same points."""

    shown: Shown
    verdicts: tuple[Verdict, ...]
    claims: tuple[claimed.Row, ...]
    charts: tuple[Drawn, ...]
    notes: tuple[str, ...]
    asked: tuple[parts.Asked, ...]
    commands: tuple[str, ...]
    points: tuple[parts.Points, ...]
    same_as: str

    def of(self, judged: bool) -> list[Verdict]:
        """Return the verdicts on statements that were judged, or those on the others."""
        return [each for each in self.verdicts if (each.word != NOT_MEASURED) is judged]


def draw_charts(loaded: Loaded, expected: Sequence[int] = ()) -> Charts:
    """Draw every figure's charts into its folder; return the files by figure. Raises StoreError."""
    shown = loaded.figures
    return figures.draw([figures.Wanted(each.figure, each.points, each.folder, expected) for each in shown])


def write_report(
    experiment: Experiment, loaded: Loaded, charts: Charts, results: Path, output: Path | None = None
) -> Path:
    """Write the report of the loaded points to `output`, by default to `default_path`; return its path.

    The file appears whole or not at all. Raises UsageError if there is
    nothing to report, StoreError if it cannot be written.
    """
    path = output or default_path(experiment, results)
    if not loaded.points:
        where = results / experiment.folder
        broken = f" ({len(loaded.broken)} damaged: {loaded.broken[0]})" if loaded.broken else ""
        raise UsageError(
            f"there are no results in {where}{broken}: run `refabric run {experiment.name}` first, or give "
            "another folder with --results"
        )
    check_replaceable(path)
    with files.storing(f"creating {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    watch = _write_watch_page(experiment, loaded, path)
    files.replace_file(path, page(experiment, loaded, charts, now(), watch).encode())
    return path


def watch_path(report: Path) -> Path:
    """Return the path of the page that a report links to: watch.html beside report.html."""
    name = report.name.replace("report", "watch", 1) if report.name.startswith("report") else ""
    return report.with_name(name or f"{report.stem}-watch.html")


def _write_watch_page(experiment: Experiment, loaded: Loaded, report: Path) -> str:
    """Write the page that shows points at work; return its name, or nothing if there is none to show."""
    made = watching.self_contained(experiment.title, [judged.point for judged in loaded.points])
    if not made.points:
        return ""
    path = watch_path(report)
    check_replaceable(path)
    files.replace_file(path, made.html.encode())
    return path.name


def check_replaceable(path: Path) -> None:
    """Raise UsageError if there is something at `path` that is not a page of refabric, or if root may not
    write there."""
    check_private(f"--output {path}", path)
    if path.is_dir():
        raise UsageError(f"--output {path}: it is a folder; name a file in it, e.g. {path / REPORT}")
    try:
        ours = MARK in files.read_bytes(path, MAX_PAGE_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        what = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"--output {path}: {what}; name another file, or remove it") from error
    if not ours:
        raise UsageError(
            f"--output {path}: it exists and is not a report of refabric; name another file, or remove it"
        )


def default_path(experiment: Experiment, results: Path) -> Path:
    """Return results/<folder>/report.html, or report-<name>.html in a folder with another experiment's
    name."""
    own = experiment.name == experiment.folder
    return results / experiment.folder / (REPORT if own else f"report-{experiment.name}.html")


def now() -> str:
    """Return the current UTC time in minutes, for the footer."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def page(experiment: Experiment, loaded: Loaded, charts: Charts, written: str, watch: str = "") -> str:
    """Return the page as HTML; `watch` names the page beside it that shows points at work.

    Raises StoreError for a chart that cannot be read.
    """
    shown_parts = _parts(loaded, charts)
    points = loaded.points
    known = [verdict.published for part in shown_parts for verdict in part.verdicts]
    claims = once(claim for shown in loaded.figures for claim in shown.claims)
    contents = claimed.rows(claims)
    return _template().render(
        experiment=experiment,
        parts=shown_parts,
        warning=words.warning(points),
        summary=[*([claimed.score(claims)] if contents else []), *words.summary(loaded)],
        findings=[] if contents else words.findings(loaded),
        contents=contents,
        some_judged=any(part.of(judged=True) for part in shown_parts),
        some_open=any(part.of(judged=False) for part in shown_parts),
        colours=claimed.COLOURS,
        doubts=words.doubts(points),
        cautions=words.cautions(points),
        retried=words.retried(points),
        failures=parts.failures(points),
        broken=[str(error) for error in loaded.broken],
        provenance=collect(points),
        citations=list(dict.fromkeys(row.citation for row in known)),
        sources=words.sources(known),
        terms=words.TERMS,
        published=words.published,
        place=place,
        known_as=known_as(known),
        measured=words.measured,
        tolerance=words.tolerance,
        written=written,
        watch=watch,
    )


@functools.cache
def _template() -> Template:
    import jinja2  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def _parts(loaded: Loaded, charts: Charts) -> list[Part]:
    seen: dict[frozenset[str], str] = {}
    found = []
    for shown in loaded.figures:
        names = frozenset(judged.point.name for judged in shown.points)
        same_as = seen.get(names, "") if names else ""
        seen.setdefault(names, shown.figure.name)
        found.append(_part(shown, charts.get(shown.figure.name, ()), same_as))
    return found


def _part(shown: Shown, charts: Sequence[Path], same_as: str) -> Part:
    own = OwnSettings([shown.figure])
    drawn = {
        name: [p for p in charts if p.suffix == ".svg" and _chart_of(p) == name]
        for name in shown.figure.charts
    }
    empty = [
        f"{shown.figure.chart(name).title}: not drawn, because these points lack the measurements for it."
        for name, found in drawn.items()
        if shown.points and not found
    ]
    return Part(
        shown,
        tuple(shown.verdicts),
        tuple(claimed.rows(shown.claims)),
        tuple(_drawn(path, shown.figure.chart(name)) for name, found in drawn.items() for path in found),
        (*parts.missing(shown), *empty),
        tuple(parts.asked(shown.points)),
        tuple(parts.commands(shown.figure, shown.points, shown.figure.options)),
        ()
        if same_as
        else (
            *parts.agreement_tables(shown.points, own),
            *parts.point_tables(shown.points, own, shown.figure.metrics),
        ),
        same_as,
    )


def _chart_of(path: Path) -> str:
    """Return the chart of a file: its name is the first part of the file's name (plots/data.py)."""
    return path.stem.split("-", 1)[0]


def _drawn(path: Path, chart: Chart) -> Drawn:
    try:
        svg = files.read_bytes(path, MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StoreError(f"reading {path}: {what}; draw it again with `refabric plot`") from error
    return Drawn(picture(svg, chart.title, chart.reading), chart.reading)
