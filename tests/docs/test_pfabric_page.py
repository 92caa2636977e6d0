"""The page on pFabric takes its numbers from results: tables of completion times at marks in the text."""

from __future__ import annotations

import re

import pytest

from common.errors import UsageError
from docs.tools import pages
from docs.tools.pfabric_page import EXPERIMENTS, PAGE, by_arm, completion, text
from experiments.registry import CATALOGUE
from harness.load import FigureResults
from harness.options.options import UserOptions, resolve
from model.arms import MINTCP, TCP, arm_of
from model.spec import RunSpec, TopologySpec
from tests.support.judged_points import with_times_alone

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
    return FigureResults(FIGURE, tuple(points), PAGE.parent)


def planned(seed: int) -> list[RunSpec]:
    given = UserOptions.of(workload="pairs:80", seed=str(seed))
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
    page = PAGE.read_text()
    known = {figure.name for experiment in EXPERIMENTS for figure in experiment.figures}
    blocks = set(re.findall(r"<!-- (?:completion|arms|verdicts|basis): (\S+)", page))
    charts = {name.partition("/")[0] for name in pages.charts(page).values()}
    assert blocks and charts
    assert blocks | charts <= known
