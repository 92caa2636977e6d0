"""Charts: three formats of each, whatever the points; words and numbers that a reader relies on."""

from __future__ import annotations

import itertools
import re
import statistics
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from common.errors import StoreError
from model.result import Status
from plots.charts.throughput import rank_finding, throughput_finding
from plots.data import Point, interval_pct, panels
from plots.registry import CHARTS
from tests.support.chart_points import SIGCOMM11_LEVELS, changed, point, with_goodputs
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
        paths = CHARTS[name].draw(CASES[case], tmp_path, expected=ALL, levels=SIGCOMM11_LEVELS)
        assert len(paths) == (case not in UNMEASURED.get(name, set()))
        assert all("FatTree k=" in words_of(path) for path in paths)


@pytest.mark.usefixtures("every_format")
def test_every_chart_comes_whole_in_three_formats(tmp_path: Path) -> None:
    for name in ("throughput", "rank"):
        paths = CHARTS[name].draw(CASES["every status"], tmp_path, expected=ALL)
        assert [path.suffix for path in paths] == [".svg", ".pdf", ".png"]
        starts = [path.read_bytes()[:5] for path in paths]
        assert starts == [b"<?xml", b"%PDF-", b"\x89PNG\r"]
    assert len(list(tmp_path.iterdir())) == 6, "nothing half written stays behind"


def test_charts_can_stand_in_one_page(tmp_path: Path) -> None:
    """No id occurs in two charts, and words are text, not outlines."""
    svgs = [
        CHARTS[name].draw(CASES["every status"], tmp_path, expected=ALL)[0] for name in ("throughput", "rank")
    ]
    ids = [element.get("id") for svg in svgs for element in ElementTree.parse(svg).iter()]
    named = [one for one in ids if one]
    assert len(named) == len(set(named)) > 0
    for svg in svgs:
        references = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg.read_text()))
        assert references and references <= set(named)


def test_a_chart_says_what_is_not_there_and_what_was_published(tmp_path: Path) -> None:
    points = [point(1), point(2, status=Status.FAILED), point(8, status=Status.SUSPECT)]
    text = words_of(
        CHARTS["throughput"].draw(points, tmp_path, expected=(1, 2, 3, 8), levels=SIGCOMM11_LEVELS)[0]
    )
    for words in ("missing", "failed", "SIGCOMM'11 (k=8)", "< 50 %", "about 95 %", "reason of suspect"):
        assert words in text, words
    text = words_of(CHARTS["rank"].draw(points, tmp_path, expected=(1, 2, 3, 8), levels=SIGCOMM11_LEVELS)[0])
    for words in ("missing: MPTCP 3", "failed: MPTCP 2", "MPTCP 8 (suspect)"):
        assert words in text, words


def test_published_levels_belong_to_their_topology(tmp_path: Path) -> None:
    for topology, shown in (("fat_tree", True), ("dual_homed_fat_tree", False)):
        points = [changed(point(1), topology=topology)]
        (path,) = CHARTS["throughput"].draw(points, tmp_path / topology, levels=SIGCOMM11_LEVELS)
        assert ("SIGCOMM" in words_of(path)) == shown


def test_titles_state_the_means_and_the_slowest_flow_of_good_points() -> None:
    (panel,) = panels([*(point(n) for n in (1, 2, 6)), point(8, status=Status.SUSPECT)])
    title = throughput_finding(panel)
    assert "6 subflows reaches 85 %" in title and "TCP 47 %" in title and "88 %" not in title
    assert "6 subflows the slowest flow gets 80 %" in rank_finding(panel)
    (panel,) = panels([point(n, status=Status.SUSPECT) for n in (1, 8)])
    assert "suspect" in throughput_finding(panel) and "MPTCP 8 88 %" in throughput_finding(panel)


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
    (panel,) = panels(points)
    slowest = {n: min(min(p.flows_pct) for p in points if p.subflows == n) for n in (1, 8)}
    shown = [int(number) for number in re.findall(r"(\d+) %", rank_finding(panel))]
    assert shown == [round(slowest[8]), round(slowest[1])]
    assert "all 48 flows of 3 seeds" in words_of(CHARTS["rank"].draw(points, tmp_path)[0])


def test_drawing_leaves_matplotlib_as_it_was_and_repeats_itself(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    first = [path.read_bytes() for path in CHARTS["throughput"].draw(CASES["one seed"], tmp_path)[:2]]
    again = [path.read_bytes() for path in CHARTS["throughput"].draw(CASES["one seed"], tmp_path)[:2]]
    assert first == again and dict(mpl.rcParams) == before


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match=f"{blocked}.*--results"):
        CHARTS["throughput"].draw([point(1)], blocked)
