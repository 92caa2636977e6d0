"""The page of published numbers lists every statement, with its source."""

from __future__ import annotations

from dataclasses import replace

from docs.tools.published_page import MARK, page, quoted, section_of, statements
from experiments import cs244_2013
from experiments.registry import EXPERIMENTS
from experiments.sigcomm11.statements import ONE_TO_ONE, TCP_MEAN_QUOTE
from harness.metrics.published import UNPUBLISHED, Source


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
