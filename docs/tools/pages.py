"""Replace marked parts of a page: blocks of text, and images by charts of a results folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from common.errors import UsageError
from harness.experiment import Experiment
from harness.load import ExperimentResults, load
from harness.options.options import ENGINE
from harness.plan import session

_IMAGE = re.compile(r"\(((?:\.\./)?images/[\w./-]+\.png)\)<!-- (\S+\.png) -->")
_BASIS = re.compile(r"\((95 %, \d+ \w+)")
"""Interval and repetitions of a measured value."""
Maker = Callable[[str], str | None]


def filled(page: str, makers: Mapping[str, Maker]) -> str:
    """Return `page` with the text between `<!-- KIND: ABOUT -->` and `<!-- end -->` made by `makers[KIND]`.

    A maker takes ABOUT. Blocks of other kinds stay, and those whose maker returns None.
    """

    def block(match: re.Match[str]) -> str:
        kind, about = match.groups()
        text = makers[kind](about)
        return match[0] if text is None else f"<!-- {kind}: {about} -->\n{text}\n<!-- end -->"

    kinds = "|".join(map(re.escape, makers))
    return re.sub(rf"<!-- ({kinds}): (.+?) -->\n.*?<!-- end -->", block, page, flags=re.DOTALL)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; a `|` in a cell becomes a `/`."""
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def basis_in_head(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[Sequence[str]]]:
    """Move `(95 %, 6 seeds)` from the cells to the names of their columns, if all cells agree on it."""
    found = {basis for row in rows for cell in row for basis in _BASIS.findall(cell)}
    if len(found) != 1:
        return list(head), list(rows)
    (basis,) = found
    columns = {n for row in rows for n, cell in enumerate(row) if basis in cell}
    named = [f"{name} ({basis})" if n in columns else name for n, name in enumerate(head)]
    return named, [
        [cell.replace(f" ({basis}, ", " (").replace(f" ({basis})", "") for cell in row] for row in rows
    ]


def charts(page: str) -> dict[str, str]:
    """Return the images of the page, and the pattern of the chart for each."""
    return dict(_IMAGE.findall(page))


def simulated_chart(folder: Path, pattern: str) -> Path | None:
    """Return the simulated chart that matches `pattern`, or None; emulated ones have the engine's name."""
    found = [path for path in folder.glob(pattern) if ENGINE not in path.stem.split("-")]
    return min(found, key=lambda path: (len(path.name), path.name), default=None)


def copy_charts(path: Path, folder: Path, prefix: str = "") -> None:
    """Replace the images of the page at `path` by the charts in `folder`, and print how many there were.

    Charts of figures whose names do not begin with `prefix` stay.
    """
    wanted = {image: name for image, name in charts(path.read_text()).items() if name.startswith(prefix)}
    missing = []
    for image, pattern in wanted.items():
        source = simulated_chart(folder, pattern)
        if source:
            shutil.copyfile(source, path.parent / image)
        else:
            missing.append(pattern)
    click.echo(f"{path}: {len(wanted) - len(missing)} charts")
    for name in missing:
        click.echo(f"not there, so left as it was: {name}", err=True)


RESULTS = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Read the results in this folder.",
)


def page_option(default: Path) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option that names the page to write."""
    return click.option(
        "--page",
        "path",
        type=click.Path(path_type=Path),
        default=default,
        show_default=True,
        help="Write this page.",
    )


def stored(experiment: Experiment, results: Path) -> ExperimentResults:
    """Return the stored figures of an experiment. Raises UsageError without any point."""
    made = session.make_plan(experiment, {})
    found = load(experiment, results, made)
    if not found.points:
        raise UsageError(f"--results {results}: nothing there: run `refabric run {experiment.name}` first")
    return found
