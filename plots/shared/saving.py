"""Save charts as SVG, PDF and PNG files, each written atomically.

An SVG is made to stand in one page with others: text stays text, ids are unique, numbers have two decimals.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fontTools.subset import Options
from matplotlib.figure import Figure

from common import files
from plots.shared import sheet

FORMATS = ("svg", "pdf", "png")
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None},
}
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')
_GEOMETRY = re.compile(r'\b(?:d|x|y|transform|points|width|height)="[^"]*\.\d\d\d[^"]*"')
_LONG_FRACTION = re.compile(r"(\.\d\d)\d+")


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
