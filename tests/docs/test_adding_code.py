"""docs/adding.md adds a congestion control, a queue discipline and a metric. The metric is added to a copy of
the tree, which then runs; tests/packaging/test_wheel.py builds and runs the other two.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.support.tree_copy import changed_tree, changes, refabric

CONTROL, DISCIPLINE, METRIC = "A congestion control", "A queue discipline", "A metric"
OWN = "fabric/core/disciplines/early_drop.hpp"
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "2",
    "--warmup", "0.5",
)  # fmt: skip
STUDY = "cs244-one-to-one"


@pytest.mark.parametrize(("section", "files"), [(CONTROL, 3), (DISCIPLINE, 3), (METRIC, 1)])
def test_few_files_change(section: str, files: int) -> None:
    assert len({name for name, _ in changes(section)} - {OWN}) == files


def test_the_metric_reaches_every_table(tmp_path: Path) -> None:
    tree = changed_tree(tmp_path, METRIC)
    runs = [refabric(tree, "run", STUDY, *POINT, "--results", results) for results in ("first", "second")]
    assert all(re.search(r"\brange\b.*\n.*Mb/s", shown) for shown in runs)
    with (tree / "first" / STUDY / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ranges = {row["workload"]: float(row["goodput_range_mbps"]) for row in rows}
    assert ranges["reference"] == 0, "one flow"
    assert ranges["one_to_one"] > 0
    assert "range" in (tree / "first" / STUDY / "report.html").read_text()
    assert "goodput_range_mbps" in refabric(tree, "compare", f"first/{STUDY}", f"second/{STUDY}", "--json")
