"""docs/adding.md adds a field of the spec, a metric and a chart: a copy of the tree gets them and runs.

tests/packaging/test_wheel.py builds and runs its congestion control and its queue discipline.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.support.svg_text import words_of
from tests.support.tree_copy import changed_tree, refabric

STUDY = "cs244-one-to-one"
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "2",
    "--warmup", "0.5",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a changed copy of the tree, which has run a point without the field and one with it."""
    copy = changed_tree(tmp_path_factory.mktemp("copy"), "A field of the spec", "A metric", "A chart")
    for folder, more in (("plain", ()), ("slow", ("--processing", "50"))):
        shown = refabric(copy, "run", STUDY, *POINT, *more, "--results", folder)
        assert re.search(r"\brange\b.*\n.*Mb/s", shown), "the metric's column"
    return copy


def points(listing: str) -> list[str]:
    jobs = (json.loads(line) for line in listing.splitlines())
    return [job["point"] for job in jobs if job["event"] == "job"]


def test_the_field_reaches_spec_result_label_report_and_comparison(tree: Path) -> None:
    assert "--processing US" in refabric(tree, "run", "--help")
    specs = [json.loads(path.read_text())["spec"] for path in (tree / "slow" / STUDY).glob("*/run.json")]
    assert {spec["link"]["processing_us"] for spec in specs} == {50.0}
    page = (tree / "slow" / STUDY / "report.html").read_text().replace("</span> <span>", " ")
    assert "--processing 50" in page, "the command that repeats the run"
    assert "50 us of processing" in page, "the label of the points"
    assert "processing_us" in refabric(tree, "compare", f"plain/{STUDY}", f"slow/{STUDY}")


def test_a_value_that_is_out_of_range_is_refused(tree: Path) -> None:
    with pytest.raises(AssertionError, match="--processing -1: must be at least 0 us"):
        refabric(tree, "plan", STUDY, *POINT, "--processing", "-1")


def test_the_metric_reaches_every_table(tree: Path) -> None:
    with (tree / "plain" / STUDY / "summary.csv").open(newline="") as file:
        ranges = {row["workload"]: float(row["goodput_range_mbps"]) for row in csv.DictReader(file)}
    assert ranges["reference"] == 0, "one flow"
    assert ranges["one_to_one"] > 0
    assert "range" in (tree / "plain" / STUDY / "report.html").read_text()
    assert "goodput_range_mbps" in refabric(tree, "compare", f"plain/{STUDY}", f"slow/{STUDY}", "--json")


def test_the_chart_is_drawn_with_its_finding(tree: Path) -> None:
    mine = """from refabric.own import experiment
EXPERIMENT = experiment("mine", "Mine", charts=["retransmitted"])
"""
    (tree / "mine.py").write_text(mine)
    refabric(tree, "run", "./mine.py", *POINT)
    (drawn,) = (tree / "results" / "mine").rglob("retransmitted-*.svg")
    words = words_of(drawn)
    assert re.search(r"At most \d+ segments were retransmitted", words), words
    assert "subflows" in words and "FatTree k=4" in words
