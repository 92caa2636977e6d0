"""Charts: three formats of each, whole or not there, whatever the points; what a reader relies on."""

from __future__ import annotations

import errno
import io
import itertools
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure

from common import files
from common.errors import StoreError
from model.result import Status
from plots.data import Inputs, interval_pct
from plots.registry import CHARTS
from plots.shared import style
from plots.shared.saving import LAYOUT_TABLES, without_layout_tables
from tests.support.chart_points import SIGCOMM11_LEVELS, Point, changed, point, with_goodputs
from tests.support.reasons import of_text
from tests.support.svg_text import words_of

ALL = range(1, 9)
STATUSES = (Status.OK, Status.SUSPECT, Status.FAILED)
CASES: dict[str, list[Point]] = {
    "one seed": [point(n) for n in ALL],
    "six seeds": [point(n, seed) for n in ALL for seed in range(1, 7)],
    "every status": [point(n, 1, STATUSES[n % 3]) for n in ALL],
    "every status, seeds": [point(n, s, STATUSES[(n + s) % 3]) for n in ALL for s in (1, 2)],
    "all failed": [point(n, 1, Status.FAILED) for n in ALL],
    "all suspect": [point(n, 1, Status.SUSPECT) for n in ALL],
    "only tcp": [point(1)],
    "no flow table": [changed(point(n), flows=()) for n in ALL],
    "above 100 %": [with_goodputs(point(8), (128.0, 134.0))],
    "zero": [with_goodputs(point(1), (0.0, 0.0))],
    "one flow": [changed(with_goodputs(point(2), (90.0,)), hosts=2)],
    "hostile reason": [
        changed(point(8, 1, Status.SUSPECT), reasons=(of_text("\x1b[1m$x_{$ <&"), of_text("y" * 300)))
    ],
    "32 subflows": [point(1), changed(point(8), subflows=32)],
}


UNMEASURED = {"rank": {"all failed", "no flow table"}}
"""Cases without a number that a chart could show."""


@pytest.mark.parametrize("case", CASES)
def test_any_points_give_charts(case: str, tmp_path: Path) -> None:
    for name in ("throughput", "rank"):
        paths = CHARTS[name].draw(Inputs(CASES[case], tmp_path, expected=ALL, levels=SIGCOMM11_LEVELS))
        assert len(paths) == (case not in UNMEASURED.get(name, set()))
        assert all("FatTree k=" in words_of(path) for path in paths)


@pytest.mark.usefixtures("every_format")
def test_every_chart_comes_whole_in_three_formats(tmp_path: Path) -> None:
    for name in ("throughput", "rank"):
        paths = CHARTS[name].draw(Inputs(CASES["every status"], tmp_path, expected=ALL))
        assert [path.suffix for path in paths] == [".svg", ".pdf", ".png"]
        starts = [path.read_bytes()[:5] for path in paths]
        assert starts == [b"<?xml", b"%PDF-", b"\x89PNG\r"]
    assert len(list(tmp_path.iterdir())) == 6, "nothing half written stays behind"


def test_charts_can_stand_in_one_page(tmp_path: Path) -> None:
    """No id occurs in two charts, and words are text, not outlines."""
    svgs = [
        CHARTS[name].draw(Inputs(CASES["every status"], tmp_path, expected=ALL))[0]
        for name in ("throughput", "rank")
    ]
    ids = [element.get("id") for svg in svgs for element in ElementTree.parse(svg).iter()]
    named = [one for one in ids if one]
    assert len(named) == len(set(named)) > 0
    for svg in svgs:
        references = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg.read_text()))
        assert references and references <= set(named)


def test_a_chart_says_what_is_not_there_and_what_was_published(tmp_path: Path) -> None:
    points = [point(1), point(2, status=Status.FAILED), point(8, status=Status.SUSPECT)]
    inputs = Inputs(points, tmp_path, expected=(1, 2, 3, 8), levels=SIGCOMM11_LEVELS)
    text = words_of(CHARTS["throughput"].draw(inputs)[0])
    for words in ("missing", "failed", "SIGCOMM'11 (k=8)", "< 50 %", "about 95 %", "reason of suspect"):
        assert words in text, words
    text = words_of(
        CHARTS["rank"].draw(Inputs(points, tmp_path, expected=(1, 2, 3, 8), levels=SIGCOMM11_LEVELS))[0]
    )
    for words in ("missing: MPTCP 3", "failed: MPTCP 2", "MPTCP 8 (suspect)"):
        assert words in text, words


def test_published_levels_belong_to_their_topology(tmp_path: Path) -> None:
    for topology, shown in (("fat_tree", True), ("dual_homed_fat_tree", False)):
        points = [changed(point(1), topology=topology)]
        (path,) = CHARTS["throughput"].draw(Inputs(points, tmp_path / topology, levels=SIGCOMM11_LEVELS))
        assert ("SIGCOMM" in words_of(path)) == shown


def drawn(name: str, points: list[Point], folder: Path) -> str:
    """Return the words of a chart."""
    return words_of(CHARTS[name].draw(Inputs(points, folder))[0])


def test_titles_state_the_means_and_the_slowest_flow_of_good_points(tmp_path: Path) -> None:
    points = [*(point(n) for n in (1, 2, 6)), point(8, status=Status.SUSPECT)]
    title = drawn("throughput", points, tmp_path)
    assert "6 subflows reaches 85 %" in title and "TCP 47 %" in title and "88 %" not in title
    assert "6 subflows the slowest flow gets 80 %" in drawn("rank", points, tmp_path)
    title = drawn("throughput", [point(n, status=Status.SUSPECT) for n in (1, 8)], tmp_path)
    assert "suspect" in title and "MPTCP 8 88 %" in title


def test_intervals_need_six_seeds() -> None:
    assert interval_pct([50.0, 51.0, 52.0, 53.0, 54.0]) is None
    values = [50.0, 51.0, 52.0, 53.0, 54.0, 55.0]
    half = interval_pct(values)
    assert half == pytest.approx(2.5706 * statistics.stdev(values) / 6**0.5, rel=1e-4)
    widths = [interval_pct([0.0, 1.0] * n) or 0.0 for n in range(3, 20)]
    assert all(a > b for a, b in itertools.pairwise(widths)), "more seeds, narrower interval"


def test_the_title_of_a_rank_chart_has_the_slowest_flow_of_all_seeds(tmp_path: Path) -> None:
    """A mean of the seeds' slowest flows would be no flow of the data."""
    points = [point(subflows, seed) for subflows in (1, 8) for seed in (1, 2, 3)]
    slowest = {n: min(min(p.flows_pct) for p in points if p.subflows == n) for n in (1, 8)}
    words = drawn("rank", points, tmp_path)
    shown = [int(number) for number in re.findall(r"(\d+) %", words)]
    assert shown[:2] == [round(slowest[8]), round(slowest[1])]
    assert "all 48 flows of 3 seeds" in words


def test_drawing_leaves_matplotlib_as_it_was_and_repeats_itself(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    first = [path.read_bytes() for path in CHARTS["throughput"].draw(Inputs(CASES["one seed"], tmp_path))[:2]]
    again = [path.read_bytes() for path in CHARTS["throughput"].draw(Inputs(CASES["one seed"], tmp_path))[:2]]
    assert first == again and dict(mpl.rcParams) == before


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match=f"{blocked}.*--results"):
        CHARTS["throughput"].draw(Inputs([point(1)], blocked))


def test_a_full_disk_is_named_and_leaves_the_older_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in CHARTS["throughput"].draw(Inputs([point(1)], tmp_path))}
    really = files.write_bytes

    def full(path: Path, data: bytes) -> None:
        really(path, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_bytes", full)
    with pytest.raises(StoreError, match=f"{tmp_path}.*: No space left on device; free some space"):
        CHARTS["throughput"].draw(Inputs([point(1)], tmp_path))
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
