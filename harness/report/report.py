"""`refabric report`: one self-contained HTML page about an experiment's stored points.

The page contains its charts and its styles. It has no script and fetches nothing. It is made from
stored results only, so it can be made again at any time, and from part of them.

The page on two results folders (`--compare`) is made here, too. `refabric run` makes charts and report again
only if they would change, as a hidden file beside the report says (`draw_and_report`).
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import errno
import functools
import hashlib
import html
import importlib.metadata
import io
import itertools
import json
import platform
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup

from common import files, stored_json
from common.errors import StoreError, UsageError
from common.privileges import check_private
from common.text import printable
from harness.claims.claims import NOT_MEASURED, Verdict, once, place
from harness.claims.own_settings import OwnSettings
from harness.compare import show
from harness.compare.compare import Comparison, Disagreement
from harness.experiment import Experiment
from harness.load import ExperimentResults, FigureResults
from harness.metrics.published import known_as
from harness.report import figures, sentences, tables
from harness.results.build import DECIDING, NOT_DECIDING, digest_of
from harness.results.provenance import collect
from harness.watch import page as watching
from plots.registry import Chart

if TYPE_CHECKING:
    from jinja2 import Template

REPORT = "report.html"
MARK = b'<meta name="generator" content="refabric">'
"""A line of every page, by which refabric recognises it."""
MAX_PAGE_BYTES = 1 << 30
MAX_BYTES = 1 << 26
"""Largest chart, and largest record of what was drawn."""
TEMPLATES = Path(__file__).parent / "templates"

Charts = Mapping[str, Sequence[Path]]
"""The files drawn for each figure, by its name."""


@dataclass(frozen=True)
class Part:
    """One figure as the page shows it; `charts` are pictures, and how to read them.

    `same_as` names an earlier figure with the same points."""

    shown: FigureResults
    verdicts: tuple[Verdict, ...]
    claims: tuple[tables.ClaimRow, ...]
    charts: tuple[tuple[Markup, str], ...]
    notes: tuple[str, ...]
    options: tuple[tables.OptionList, ...]
    commands: tuple[str, ...]
    points: tuple[tables.PointTable, ...]
    same_as: str

    def of(self, judged: bool) -> list[Verdict]:
        """Return the verdicts on statements that were judged, or those on the others."""
        return [each for each in self.verdicts if (each.word != NOT_MEASURED) is judged]


def draw_charts(loaded: ExperimentResults, expected: Sequence[int] = ()) -> Charts:
    """Draw every figure's charts into its folder; return the files by figure. Raises StoreError."""
    return figures.draw([dataclasses.replace(each, expected=tuple(expected)) for each in loaded.figures])


def write_report(
    experiment: Experiment,
    loaded: ExperimentResults,
    charts: Charts,
    results: Path,
    output: Path | None = None,
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


def _write_watch_page(experiment: Experiment, loaded: ExperimentResults, report: Path) -> str:
    """Write the page that shows points at work; return its name, or nothing if there is none to show."""
    made = watching.self_contained(experiment.title, loaded.points)
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


def page(
    experiment: Experiment, loaded: ExperimentResults, charts: Charts, written: str, watch: str = ""
) -> str:
    """Return the page as HTML; `watch` names the page beside it that shows points at work.

    Raises StoreError for a chart that cannot be read.
    """
    shown_parts = _parts(loaded, charts)
    points = loaded.points
    known = [verdict.published for part in shown_parts for verdict in part.verdicts]
    claims = once(claim for shown in loaded.figures for claim in shown.claims)
    contents = tables.claim_rows(claims)
    return _template().render(
        experiment=experiment,
        parts=shown_parts,
        headline=[
            *([tables.score_of(claims)] if contents else []),
            *(sentences.found_in(loaded) or headline(charts)),
        ],
        first=next((chart for part in shown_parts for chart in part.charts), None),
        basis=sentences.basis(loaded),
        findings=[] if contents else sentences.findings(loaded),
        contents=contents,
        some_judged=any(part.of(judged=True) for part in shown_parts),
        some_open=any(part.of(judged=False) for part in shown_parts),
        colours=tables.COLOURS,
        doubts=sentences.doubts(points),
        cautions=sentences.cautions(points),
        retried=sentences.retried(points),
        failures=tables.failures(points),
        broken=[str(error) for error in loaded.broken],
        provenance=collect(points),
        citations=list(dict.fromkeys(row.citation for row in known)),
        sources=sentences.sources(known),
        terms=sentences.TERMS,
        published=sentences.published_text,
        place=place,
        known_as=known_as(known),
        measured=sentences.measured_text,
        tolerance=sentences.tolerance_text,
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


def headline(charts: Charts) -> list[str]:
    """Return the finding of the first chart that has one; nothing without any. Raises StoreError for a chart
    that cannot be read."""
    drawn = (path for paths in charts.values() for path in paths if path.suffix == ".svg")
    return list(itertools.islice(filter(None, (finding(_svg(path)) for path in drawn)), 1))


def _parts(loaded: ExperimentResults, charts: Charts) -> list[Part]:
    seen: dict[frozenset[str], str] = {}
    found = []
    for shown in loaded.figures:
        names = frozenset(judged.name for judged in shown.points)
        same_as = seen.get(names, "") if names else ""
        seen.setdefault(names, shown.figure.name)
        found.append(_part(shown, charts.get(shown.figure.name, ()), same_as))
    return found


def _part(shown: FigureResults, charts: Sequence[Path], same_as: str) -> Part:
    own = OwnSettings([shown.figure])
    drawn = {
        name: [p for p in charts if p.suffix == ".svg" and figures.chart_of(p) == name]
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
        tuple(tables.claim_rows(shown.claims)),
        tuple(_drawn(path, shown.figure.chart(name)) for name, found in drawn.items() for path in found),
        (*tables.missing(shown), *empty),
        tuple(tables.option_lists(shown.points)),
        tuple(tables.commands(shown.figure, shown.points, shown.figure.options)),
        ()
        if same_as
        else (
            *tables.agreement_tables(shown.points, own),
            *tables.point_tables(shown.points, own, shown.figure.metrics),
        ),
        same_as,
    )


def _drawn(path: Path, chart: Chart) -> tuple[Markup, str]:
    return picture(_svg(path), chart.title, chart.reading), chart.reading


def _svg(path: Path) -> str:
    try:
        return files.read_bytes(path, MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StoreError(f"reading {path}: {what}; draw it again with `refabric plot`") from error


_FONT, _FONTS = "'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif"
_TEXT = re.compile(r'<text style="font-size: (\d+(?:\.\d+)?)px[^<>]*>([^<]*)</text>')


def picture(svg: str, title: str, reading: str = "") -> Markup:
    """Return an element for HTML; screen readers read the chart's finding, `title` and `reading`."""
    alternative = ". ".join(filter(None, (finding(svg), title, reading)))
    data = base64.b64encode(svg.replace(_FONT, _FONTS).encode()).decode()
    return Markup('<img class="chart" alt="{}" src="data:image/svg+xml;base64,{}">').format(alternative, data)


def finding(svg: str) -> str:
    """Return the text in the largest font, which is the finding of a chart."""
    texts = [(float(size), text) for size, text in _TEXT.findall(svg)]
    largest = max((size for size, _ in texts), default=0.0)
    return html.unescape(" ".join(" ".join(text.split()) for size, text in texts if size == largest))


DEFAULT_COMPARISON = Path("comparison.html")
_COMPARISON_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
{mark}
<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; }}
pre {{ font: 13px/1.4 monospace; overflow-x: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>Differences are B minus A. A is <code>{a}</code> ({points_a} points), B is <code>{b}</code>
({points_b} points).</p>
<pre>{text}</pre>
<footer><p>Written {written} by <code>refabric report --compare</code>. The page works offline and has
no script.</p></footer>
</body>
</html>
"""


def write_comparison(
    comparison: Comparison, disagreements: Sequence[Disagreement], output: Path | None
) -> Path:
    """Write the page to `output`, by default comparison.html; return its path.

    Raises UsageError if something else is there, StoreError if it cannot be written.
    """
    path = output or DEFAULT_COMPARISON
    check_replaceable(path)
    with files.storing(f"creating {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(path, comparison_page(comparison, disagreements, now()).encode())
    return path


def comparison_page(comparison: Comparison, disagreements: Sequence[Disagreement], written: str) -> str:
    """Return the page as HTML."""
    text = io.StringIO()
    show.show(text, comparison, disagreements)
    a, b = comparison.a, comparison.b
    return _COMPARISON_PAGE.format(
        mark=MARK.decode(),
        title=_escaped(f"{a.path.name} and {b.path.name}, compared"),
        a=_escaped(str(a.path)),
        b=_escaped(str(b.path)),
        points_a=len(a.measured),
        points_b=len(b.measured),
        text=_escaped(text.getvalue()),
        written=written,
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text))


FORMAT, SCHEMA = "refabric-drawn", 1
_DRAWN_BY = ("matplotlib", "numpy", "jinja2")
_SOURCES = frozenset({".py", ".html", ".css", ".js", ".txt"})


def draw_and_report(
    experiment: Experiment, loaded: ExperimentResults, wanted: Sequence[FigureResults], results: Path
) -> tuple[Charts, Path]:
    """Draw the charts and write the report, unless both are there and would be the same; return the charts'
    files by figure, and the report.

    What a user's file defines is always made again: its code is not known here. Raises StoreError,
    UsageError.
    """
    path = default_path(experiment, results)
    if any(
        figure.file or figure.own_charts or figure.metrics or figure.added for figure in experiment.figures
    ):
        return _made(experiment, loaded, wanted, results), path
    with files.storing(f"reading the points in {path.parent}"):
        made_from = inputs(loaded, wanted)
    charts = cached_charts(path, made_from)
    if charts is None:
        charts = _made(experiment, loaded, wanted, results)
        cache_charts(path, made_from, charts, [each for each in (path, watch_path(path)) if each.exists()])
    return charts, path


def _made(
    experiment: Experiment, loaded: ExperimentResults, wanted: Sequence[FigureResults], results: Path
) -> Charts:
    charts = figures.draw(wanted)
    write_report(experiment, loaded, charts, results)
    return charts


def cache_path(page: Path) -> Path:
    """Return the hidden file beside a report: `.report.json`."""
    return page.with_name(f".{page.stem}.json")


def inputs(loaded: ExperimentResults, wanted: Sequence[FigureResults]) -> str:
    """Return a digest of refabric's own files, of the stored points and of the options. Raises OSError."""
    digest = hashlib.sha256(_code().encode())
    for each in wanted:
        names = [judged.name for judged in each.points]
        asked = [each.figure.name, each.figure.charts, str(each.folder), list(each.expected), names]
        digest.update(json.dumps(asked).encode())
    for point in loaded.points:
        digest.update(f"{point.path} {point.digest}\n".encode())
    digest.update("\n".join(str(error) for error in loaded.broken).encode())
    return digest.hexdigest()


@functools.cache
def _code() -> str:
    """Return the versions and a digest of the code, as they were when this process first needed them."""
    versions = [importlib.metadata.version(name) for name in _DRAWN_BY]
    return f"{platform.python_version()} {versions} {digest_of((*DECIDING, *NOT_DECIDING), _SOURCES)}"


def _seen(path: Path) -> list[int]:
    """Return size and times of a regular file; nothing for anything else."""
    about = path.lstat()
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns] if stat.S_ISREG(about.st_mode) else []


def cached_charts(page: Path, made_from: str) -> Charts | None:
    """Return the files of each figure's charts if they and the report are as they were written from these
    inputs; None if they must be made again."""
    try:
        data = stored_json.loads(files.read_bytes(cache_path(page), MAX_BYTES))
        if (data["format"], data["schema"], data["inputs"]) != (FORMAT, SCHEMA, made_from):
            return None
        written = msgspec.convert(data["written"], dict[str, list[int]])
        if any(not seen or _seen(page.parent / name) != seen for name, seen in written.items()):
            return None
        charts = msgspec.convert(data["charts"], dict[str, list[str]])
        found = {figure: [page.parent / name for name in names] for figure, names in charts.items()}
        known = {page.parent / name for name in written}
        return found if all(known.issuperset(paths) for paths in found.values()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def cache_charts(page: Path, made_from: str, charts: Charts, pages: Sequence[Path]) -> None:
    """Write what was made from these inputs. Raises StoreError."""
    folder = page.parent
    written = [*(path for paths in charts.values() for path in paths), *pages]
    names = {path: path.relative_to(folder).as_posix() for path in written}
    with files.storing(f"reading what was written in {folder}"):
        seen = {name: _seen(path) for path, name in names.items()}
    data: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "inputs": made_from,
        "charts": {figure: [names[path] for path in paths] for figure, paths in charts.items()},
        "written": seen,
    }
    files.replace_file(cache_path(page), (json.dumps(data) + "\n").encode())
