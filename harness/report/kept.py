"""Whether charts and report would be the same again, so that a run with nothing to do leaves them alone.

A hidden file beside the report has a digest of what they were made from, and the size and time of every file
that was written. If anything is different, everything is made again.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import platform
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import files, records, stored_json
from harness.experiment import Experiment
from harness.load import Loaded
from harness.report import figures, report
from harness.report.figures import Wanted
from harness.report.report import Charts
from harness.results.build import DECIDING, NOT_DECIDING, digest_of

FORMAT, SCHEMA = "refabric-drawn", 1
MAX_BYTES = 1 << 26
_DRAWN_BY = ("matplotlib", "numpy", "jinja2")
_SOURCES = frozenset({".py", ".html", ".css", ".js", ".txt"})


def draw_and_report(
    experiment: Experiment, loaded: Loaded, wanted: Sequence[Wanted], results: Path
) -> tuple[Charts, Path]:
    """Draw the charts and write the report, unless both are there and would be the same; return the charts'
    files by figure, and the report.

    What a user's file defines is always made again: its code is not known here. Raises StoreError,
    UsageError.
    """
    path = report.default_path(experiment, results)
    if any(figure.file or figure.own_charts or figure.metrics for figure in experiment.figures):
        return _made(experiment, loaded, wanted, results), path
    with files.storing(f"reading the points in {path.parent}"):
        made_from = inputs(loaded, wanted)
    charts = charts_of(path, made_from)
    if charts is None:
        charts = _made(experiment, loaded, wanted, results)
        note(path, made_from, charts, [each for each in (path, report.watch_path(path)) if each.exists()])
    return charts, path


def _made(experiment: Experiment, loaded: Loaded, wanted: Sequence[Wanted], results: Path) -> Charts:
    charts = figures.draw(wanted)
    report.write_report(experiment, loaded, charts, results)
    return charts


def record_path(page: Path) -> Path:
    """Return the hidden file beside a report: `.report.json`."""
    return page.with_name(f".{page.stem}.json")


def inputs(loaded: Loaded, wanted: Sequence[Wanted]) -> str:
    """Return a digest of refabric's own files, of the stored points and of the options. Raises OSError."""
    digest = hashlib.sha256(_code().encode())
    for each in wanted:
        names = [judged.point.name for judged in each.points]
        asked = [each.figure.name, each.figure.charts, str(each.out), list(each.expected), names]
        digest.update(json.dumps(asked).encode())
    for point in (judged.point for judged in loaded.points):
        digest.update(f"{point.path} {point.fingerprint}\n".encode())
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


def charts_of(page: Path, made_from: str) -> Charts | None:
    """Return the files of each figure's charts if they and the report are as they were written from these
    inputs; None if they must be made again."""
    try:
        data = records.mapping(
            stored_json.loads(files.read_bytes(record_path(page), MAX_BYTES)), "the record"
        )
        if (data["format"], data["schema"], data["inputs"]) != (FORMAT, SCHEMA, made_from):
            return None
        written = records.mapping(data["written"], "the files")
        if any(not seen or _seen(page.parent / name) != seen for name, seen in written.items()):
            return None
        charts = records.mapping(data["charts"], "the charts")
        found = {
            figure: [page.parent / records.text(name, "a chart") for name in names]
            for figure, names in charts.items()
        }
        known = {page.parent / name for name in written}
        return found if all(known.issuperset(paths) for paths in found.values()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def note(page: Path, made_from: str, charts: Charts, pages: Sequence[Path]) -> None:
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
    files.replace_file(record_path(page), (json.dumps(data) + "\n").encode())
