"""The page on the paper takes its numbers from results: tables, score and charts at marks in the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.errors import UsageError
from docs.tools.pages import charts, simulated_chart
from docs.tools.paper_page import PAGE, written
from experiments.sigcomm11.whole import SECTIONS
from harness.claims.claims import Colour
from harness.report.tables import ClaimCell, ClaimRow

ROW = ClaimRow(
    "sigcomm11-throughput", "FatTree", "levels off", "k=8", ClaimCell("about 95 %", "text"),
    ClaimCell("70 % (1 seed)"),
    ClaimCell("80 %", "", "k=4"), Colour.RED, "differs", "5 %", ("Paths collide.",),
)  # fmt: skip
TEXT = "before\n<!-- claims: FatTree -->\nold\n<!-- end -->\n<!-- differs: FatTree -->\n<!-- end -->\nafter"


def test_tables_and_reasons_are_made_anew_and_text_is_kept() -> None:
    page = written(TEXT, [ROW], "")
    assert "| levels off | about 95 % (text) | 70 % (1 seed) | 80 % at k=4 | **differs** |" in page
    assert "* levels off: Paths collide." in page
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("\nafter")
    assert written(page, [ROW], "") == page


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(UsageError, match="choose from: FatTree"):
        written("<!-- claims: Fat Tree -->\n<!-- end -->", [ROW], "")


def test_a_chart_is_the_simulated_one(tmp_path: Path) -> None:
    for name in ("rank-k8-mininet.png", "rank-k8-simulator.png", "rank-k16-simulator-lia.png"):
        (tmp_path / "figure").mkdir(exist_ok=True)
        (tmp_path / "figure" / name).touch()
    found = simulated_chart(tmp_path, "figure/rank-k8*.png")
    assert found is not None
    assert found.name == "rank-k8-simulator.png"
    assert simulated_chart(tmp_path, "figure/throughput*.png") is None


def test_the_sections_of_the_page_are_the_papers() -> None:
    marked = re.findall(r"<!-- (?:claims|differs): (.+?) -->", PAGE.read_text())
    assert set(marked) <= set(SECTIONS)


def test_every_chart_of_the_page_is_a_figure_of_the_paper() -> None:
    known = {f"sigcomm11-{figure.name}" for figures in SECTIONS.values() for figure in figures}
    shown = charts(PAGE.read_text())
    assert shown
    for image, chart in shown.items():
        assert chart.split("/")[0] in known, chart
        assert (PAGE.parent / image).exists(), image


def test_single_sections_leave_the_others_and_the_score() -> None:
    page = f"<!-- score -->old\n{TEXT}\n<!-- claims: Other -->\nkept\n<!-- end -->"
    made = written(page, [ROW], "new", ["FatTree"])
    assert made.startswith("<!-- score -->old\n")
    assert "| levels off |" in made
    assert made.endswith("<!-- claims: Other -->\nkept\n<!-- end -->")
    with pytest.raises(UsageError, match="the page has no such section"):
        written(page, [ROW], "new", ["Fat tree"])
