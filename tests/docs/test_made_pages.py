"""Pages on papers take tables, scores and charts from results, at marks in the text; published.md lists every
statement with its source."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import UsageError
from docs.tools import pages, paper_page, pfabric_page
from docs.tools.pages import charts, simulated_chart
from docs.tools.paper_page import written
from docs.tools.pfabric_page import by_arm, completion, text
from docs.tools.published_page import MARK, page, quoted, section_of, statements
from experiments import cs244_2013
from experiments.registry import CATALOGUE, EXPERIMENTS
from experiments.sigcomm11.statements import ONE_TO_ONE, TCP_MEAN_QUOTE
from experiments.sigcomm11.whole import SECTIONS
from harness.claims.claims import Colour
from harness.load import FigureResults
from harness.metrics.published import UNPUBLISHED, Source
from harness.options.options import resolve
from harness.report.tables import ClaimCell, ClaimRow
from model.arms import MINTCP, TCP, arm_of
from model.spec import RunSpec, TopologySpec
from tests.support.judged_points import with_times_alone
from tests.support.options import options_typed

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
    marked = re.findall(r"<!-- (?:claims|differs): (.+?) -->", paper_page.PAGE.read_text())
    assert set(marked) <= set(SECTIONS)


def test_every_chart_of_the_page_is_a_figure_of_the_paper() -> None:
    known = {f"sigcomm11-{figure.name}" for figures in SECTIONS.values() for figure in figures}
    shown = charts(paper_page.PAGE.read_text())
    assert shown
    for image, chart in shown.items():
        assert chart.split("/")[0] in known, chart
        assert (paper_page.PAGE.parent / image).exists(), image


def test_single_sections_leave_the_others_and_the_score() -> None:
    page = f"<!-- score -->old\n{TEXT}\n<!-- claims: Other -->\nkept\n<!-- end -->"
    made = written(page, [ROW], "new", ["FatTree"])
    assert made.startswith("<!-- score -->old\n")
    assert "| levels off |" in made
    assert made.endswith("<!-- claims: Other -->\nkept\n<!-- end -->")
    with pytest.raises(UsageError, match="the page has no such section"):
        written(page, [ROW], "new", ["Fat tree"])


(FIGURE,) = CATALOGUE.find("pfabric-overall").figures


def shown(*seeds: int) -> FigureResults:
    """Return a figure whose flows take 2 or 8 times as long as alone, and a tenth more at each seed."""
    times = {MINTCP: 2.0, TCP: 8.0}
    points = [
        with_times_alone(spec, times[arm_of(spec)] + seed / 10)
        for seed in seeds
        for spec in planned(seed)
        if arm_of(spec) in times
    ]
    return FigureResults(FIGURE, tuple(points), pfabric_page.PAGE.parent)


def planned(seed: int) -> list[RunSpec]:
    given = options_typed(workload="pairs:80", seed=str(seed))
    return FIGURE.points(resolve(given, FIGURE.defaults), _rate)


def _rate(_topology: TopologySpec) -> float:
    return 10_000.0


def test_numbers_of_seeds_have_an_interval_and_those_of_few_have_none() -> None:
    assert text([1.0, 1.1, 1.2]) == "1.1 \N{PLUS-MINUS SIGN} 0.2"
    assert text([1.0, 1.2]) == "1.1"
    assert text([1.0, None, 1.2]) == text([]) == "-"


def test_a_table_has_the_arms_that_ran_and_the_rows_that_have_flows() -> None:
    table = completion(shown(1, 2, 3), "websearch", "80").splitlines()
    assert table[0] == "| load |  | minTCP + pFabric | TCP, drop-tail |"
    assert table[2].startswith("| 80 % | all flows, mean | 2.2 \N{PLUS-MINUS SIGN} 0.2 | 8.2")
    assert not [line for line in table if "above 10 MB" in line]
    assert by_arm(shown(1), "websearch", "80").splitlines()[2].startswith("| minTCP + pFabric | 2.1 | 2.1 |")
    with pytest.raises(UsageError, match="no point has websearch at 20 %"):
        completion(shown(1), "websearch", "20")


def test_a_block_without_results_stays() -> None:
    page = "a\n<!-- basis: x -->\nold\n<!-- end -->\n<!-- other: x -->\nkept\n<!-- end -->"
    assert pages.filled(page, {"basis": lambda _: None}) == page
    assert pages.filled(page, {"basis": str.upper}) == page.replace("old", "X")


def test_blocks_and_charts_of_the_page_are_of_its_figures() -> None:
    page = pfabric_page.PAGE.read_text()
    known = {figure.name for experiment in pfabric_page.EXPERIMENTS for figure in experiment.figures}
    blocks = set(re.findall(r"<!-- (?:completion|arms|verdicts|basis): (\S+)", page))
    charts = {name.partition("/")[0] for name in pages.charts(page).values()}
    assert blocks and charts
    assert blocks | charts <= known


def test_every_statement_has_words_a_citation_and_a_row() -> None:
    shown = statements(EXPERIMENTS.values())
    assert len(shown) > 100
    rows = [line for line in page(MARK).splitlines() if line.startswith("| ")]
    assert len(rows) >= len(shown)
    assert [row for row in shown if not (row.words and row.citation)] == []


def test_every_published_row_says_where_it_is_from_and_in_what_words() -> None:
    published = {r: f for r, f in statements(EXPERIMENTS.values()).items() if r.source not in UNPUBLISHED}
    assert len(published) > 100
    assert [row.words for row, figures in published.items() if "not known" in section_of(row, figures)] == []
    assert [row.words for row in published if quoted(row) == "-"] == []


def test_recalled_and_unpublished_rows_have_no_words_of_a_source() -> None:
    shown = statements(EXPERIMENTS.values())
    assert [row.words for row in shown if row.quote and row.source is not Source.TEXT] == []
    recalled = replace(ONE_TO_ONE[0], source=Source.RECALLED)
    assert (quoted(ONE_TO_ONE[0]), quoted(recalled)) == (TCP_MEAN_QUOTE, "recalled")


def test_a_prefix_alone_makes_no_second_row() -> None:
    row = ONE_TO_ONE[0]
    figure = replace(
        cs244_2013.FIGURES_OF_THE_POST[0], published=(row, replace(row, words=f"LIA: {row.words}"))
    )
    experiment = replace(cs244_2013.POST, figures=(figure,))
    assert list(statements([experiment])) == [row]
