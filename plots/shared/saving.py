"""Save charts as SVG, PDF and PNG files, each written atomically.

An SVG is made to stand in one page with others: text stays text, ids are unique, numbers have two decimals.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fontTools.subset import Options
from matplotlib.figure import Figure

from common import files
from harness.results.point_results import PointResult
from model.spec import RunSpec
from plots.data import Inputs, Panel, overrides_of, panels
from plots.shared import sheet, style
from plots.shared.naming import PartOf, file_stems, place

Drawn = TypeVar("Drawn")
Drawing = Callable[[Inputs], list[Path]]
"""Draws a chart; returns the files written."""
FORMATS = ("svg", "pdf", "png")
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None},
}
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')
_GEOMETRY = re.compile(r'\b(?:d|x|y|transform|points|width|height)="[^"]*\.\d\d\d[^"]*"')
_LONG_FRACTION = re.compile(r"(\.\d\d)\d+")


def draw_groups(
    inputs: Inputs,
    of: Sequence[tuple[RunSpec, Drawn]],
    drawn: Callable[[Drawn, Inputs], Figure | None],
    named: PartOf | None = place,
    suffix: Callable[[Drawn], str] = lambda _: "",
) -> list[Path]:
    """Draw one chart for each group and return the files written. Raises StoreError when the folder cannot be
    written.

    A group is the setting that names its files (`named`, with `suffix` at the end) and the item to draw;
    without `named` the only file has the chart's name. Names also have what overrides the settings of the
    figure, where the item has `points`. `drawn` makes a figure, or None where an item has nothing to show.
    """
    stems = [inputs.chart] * len(of)
    if named is not None:
        overrides = [overrides_of(getattr(item, "points", ())) for _, item in of]
        stems = file_stems(inputs.chart, [spec for spec, _ in of], named, overrides)
    paths: list[Path] = []
    for (_, item), stem in zip(of, stems, strict=True):
        with style.look():
            figure = drawn(item, inputs)
            paths += save(figure, inputs.out, stem + suffix(item)) if figure else []
    return paths


def per_group(
    groups: Callable[[Inputs], Iterable[tuple[RunSpec, Drawn]]],
    named: PartOf | None = place,
    suffix: Callable[[Drawn], str] = lambda _: "",
) -> Callable[[Callable[[Drawn, Inputs], Figure | None]], Drawing]:
    """Return a decorator that makes a chart of a function that draws one group; see `draw_groups`."""

    def decorated(drawn: Callable[[Drawn, Inputs], Figure | None]) -> Drawing:
        return lambda inputs: draw_groups(inputs, list(groups(inputs)), drawn, named, suffix)

    return decorated


def per_panel(
    ignoring: Sequence[str] = (),
    where: Callable[[PointResult], bool] = lambda _: True,
    made: Callable[[Panel], Panel] = lambda panel: panel,
    apart: Callable[[PointResult], object] = lambda _: None,
    prepared: Callable[[Inputs], Inputs] = lambda inputs: inputs,
) -> Callable[[Callable[[Panel, Inputs], Figure | None]], Drawing]:
    """Return a decorator as `per_group` does, of charts of points that differ at most in subflows, seed and
    the fields `ignoring`, and for which `apart` returns the same."""

    def groups(inputs: Inputs) -> list[tuple[RunSpec, Panel]]:
        of = panels(filter(where, prepared(inputs).points), inputs.expected, ignoring, apart)
        return [(panel.spec, panel) for panel in map(made, of)]

    return per_group(groups)


def save(figure: Figure, directory: Path, stem: str) -> list[Path]:
    """Write `stem`.svg, .pdf and .png atomically. Raises StoreError when the folder cannot be written."""
    paths = [directory / f"{stem}.{suffix}" for suffix in FORMATS]
    with files.storing(f"writing charts to {directory}"):
        directory.mkdir(parents=True, exist_ok=True)
    for path in paths:
        files.replace_file(path, _bytes(figure, path.suffix[1:], stem))
    return paths


def _bytes(figure: Figure, kind: str, stem: str) -> bytes:
    buffer = io.BytesIO()
    with without_layout_tables():
        figure.savefig(buffer, format=kind, dpi=sheet.DPI, metadata=_METADATA.get(kind))
    return _tidy(buffer.getvalue().decode(), stem).encode() if kind == "svg" else buffer.getvalue()


def _tidy(svg: str, stem: str) -> str:
    """Make ids unique in a page of charts, and round coordinates to hundredths of a point."""
    own = _REFERENCE.sub(rf"\g<1>{stem}-", svg)
    return _GEOMETRY.sub(lambda found: _LONG_FRACTION.sub(r"\1", found[0]), own)


LAYOUT_TABLES = ("GSUB", "GPOS", "GDEF", "kern")
_DROPPED = "_drop_tables_default"


@contextlib.contextmanager
def without_layout_tables() -> Iterator[None]:
    """Leave LAYOUT_TABLES out of fonts that are embedded meanwhile.

    They only serve to lay out text, and Matplotlib has placed every glyph when it embeds a font. fontTools
    spends half of a chart's time on them, and Matplotlib (3.11) has no option to leave them out.

    A version of fontTools that keeps its defaults elsewhere embeds them, which only takes longer.
    """
    usual = getattr(Options, _DROPPED, None)
    if usual is None:
        yield
        return
    setattr(Options, _DROPPED, [*usual, *LAYOUT_TABLES])
    try:
        yield
    finally:
        setattr(Options, _DROPPED, usual)
