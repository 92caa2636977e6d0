"""Save charts as SVG, PDF and PNG files, each written atomically.

An SVG is made to stand in one page with others: text stays text, ids are unique, numbers have two decimals.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fontTools.subset import Options
from matplotlib.figure import Figure

from common import files
from model.spec import RunSpec
from plots.data import Inputs, Panel, overrides_of, panels
from plots.shared import sheet, style
from plots.shared.naming import PartOf, file_stems, place

Drawn = TypeVar("Drawn")
FORMATS = ("svg", "pdf", "png")
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None},
}
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')
_GEOMETRY = re.compile(r'\b(?:d|x|y|transform|points|width|height)="[^"]*\.\d\d\d[^"]*"')
_LONG_FRACTION = re.compile(r"(\.\d\d)\d+")


def draw_panels(
    chart: str,
    inputs: Inputs,
    drawn: Callable[[Panel], Figure | None],
    of: Sequence[Panel] | None = None,
) -> list[Path]:
    """Draw one chart for each panel in `of`, or for each setting (k, topology, workload, ...) of the points;
    return the files written.

    `drawn` makes a panel's figure, or None where the panel has nothing to show. Raises StoreError when the
    folder cannot be written.
    """
    shown = panels(inputs.points, inputs.expected) if of is None else of
    return draw_each(chart, [(panel.spec, panel) for panel in shown], inputs.out, drawn)


def draw_each(
    chart: str,
    of: Sequence[tuple[RunSpec, Drawn]],
    out: Path,
    drawn: Callable[[Drawn], Figure | None],
    named: PartOf = place,
) -> list[Path]:
    """Draw one chart for each pair in `of`: the setting that names the files, and the item to draw.

    Names also have what overrides the settings of the figure, where the item has `points`. Return the files
    written; `drawn` and errors are as in `draw_panels`.
    """
    paths: list[Path] = []
    overrides = [overrides_of(getattr(item, "points", ())) for _, item in of]
    stems = file_stems(chart, [spec for spec, _ in of], named, overrides)
    for (_, item), stem in zip(of, stems, strict=True):
        with style.look():
            figure = drawn(item)
            paths += save(figure, out, stem) if figure else []
    return paths


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
