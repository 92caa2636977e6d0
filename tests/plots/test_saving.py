"""Chart files: whole or not there."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure

from common import files
from common.errors import StoreError
from plots.registry import CHARTS
from plots.shared import style
from plots.shared.saving import LAYOUT_TABLES, without_layout_tables
from tests.support.chart_points import point


def test_a_full_disk_is_named_and_leaves_the_older_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in CHARTS["throughput"].draw([point(1)], tmp_path)}
    really = files.write_bytes

    def full(path: Path, data: bytes) -> None:
        really(path, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_bytes", full)
    with pytest.raises(StoreError, match=f"{tmp_path}.*: No space left on device; free some space"):
        CHARTS["throughput"].draw([point(1)], tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


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


ROOT = Path(__file__).resolve().parents[3]
RUN = ("run", "cs244-one-to-one", "--engine", "max-min", "--k", "4", "--subflows", "1,2")


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_nothing_stays_where_the_user_cannot_write(tmp_path: Path, variable: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    kept = {name: text for name, text in os.environ.items() if name != "MPLCONFIGDIR"}
    done = subprocess.run(
        [sys.executable, "-m", "refabric.command", *RUN, "--results", str(tmp_path / "results")],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
        env={**kept, variable: "/dev/null/none", "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results").rglob("charts/*.png"))) >= 2
    assert list(temporary.iterdir()) == []
