"""Fonts in PDF files: glyphs and text are there, tables for laying out text are not."""

from __future__ import annotations

import io
import re

import matplotlib as mpl
import pytest
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure

from plots.shared import style
from plots.shared.saving import LAYOUT_TABLES, without_layout_tables

TEXT = "office: 100 \N{GREEK SMALL LETTER MU}s \N{LESS-THAN OR EQUAL TO} AV"
_STREAM = re.compile(rb"/Length1 \d+.*?stream\r?\n(.*?)\r?\nendstream", re.DOTALL)


def embedded() -> list[TTFont]:
    """Return the fonts of a PDF with TEXT."""
    with style.look(), mpl.rc_context({"pdf.compression": 0}):
        figure = Figure()
        figure.text(0.1, 0.5, TEXT)
        figure.savefig(data := io.BytesIO(), format="pdf")
    return [TTFont(io.BytesIO(found)) for found in _STREAM.findall(data.getvalue())]


def test_fonts_have_their_glyphs_and_no_layout_tables() -> None:
    usual = embedded()
    with without_layout_tables():
        lean = embedded()
    assert any(set(LAYOUT_TABLES) & set(font.keys()) for font in usual)
    assert not any(set(LAYOUT_TABLES) & set(font.keys()) for font in lean)
    assert len(lean) == len(usual) > 0
    drawn = set()
    for one, other in zip(usual, lean, strict=True):
        names = {name for name in other.getGlyphOrder() if other["glyf"][name].numberOfContours}
        assert all(other["glyf"][name] == one["glyf"][name] for name in names)
        drawn |= names
    assert {"o", "c", "e", "one", "zero", "s", "lessequal", "A", "V"} <= drawn


def test_the_defaults_of_fonttools_come_back() -> None:
    with pytest.raises(KeyError), without_layout_tables():
        raise KeyError
    assert any(set(LAYOUT_TABLES) & set(font.keys()) for font in embedded())
