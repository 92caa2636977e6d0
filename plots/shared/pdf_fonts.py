"""Fonts in PDF files: without the tables that only serve to lay out text.

Matplotlib has placed every glyph when it embeds a subset of a font, so nobody reads these tables in the file.
fontTools spends half of a chart's time on them, and Matplotlib (3.11) has no option to leave them out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fontTools.subset import Options

LAYOUT_TABLES = ("GSUB", "GPOS", "GDEF", "kern")
_DROPPED = "_drop_tables_default"


@contextlib.contextmanager
def without_layout_tables() -> Iterator[None]:
    """Leave LAYOUT_TABLES out of fonts that are embedded meanwhile.

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
