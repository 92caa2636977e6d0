"""docs/adding.md adds a queue discipline: its changes are applied to a copy of the tree, which then runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.tree_copy import changed_tree, changes, rebuild_core, refabric

SECTION = "A queue discipline"
OWN = "fabric/core/disciplines/early_drop.hpp"
STUDY = "cs244-one-to-one"
LIMIT_PKTS = 100
"""What queues hold unless an option or a figure says otherwise."""
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "2",
    "--warmup", "0.5",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = changed_tree(tmp_path_factory.mktemp("discipline"), SECTION)
    rebuild_core(copy, "core/disciplines/admission.hpp")
    return copy


def test_three_files_change_beside_its_own() -> None:
    assert len({name for name, _ in changes(SECTION)} - {OWN}) == 3


def longest_queue(folder: Path) -> int:
    """Return the longest queue of a switch in packets, in the point under test."""
    (point,) = [path.parent for path in folder.glob("*/run.json") if "reference" not in path.parent.name]
    with (point / "ports.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["layer"].startswith("host-")]
    return max(int(row["max_queue_pkts"]) for row in rows)


@pytest.mark.builds
def test_the_discipline_drops_early_and_is_named(tree: Path) -> None:
    for folder, more in (("plain", ()), ("early", ("--early-drop", "5"))):
        refabric(tree, "run", STUDY, *POINT, *more, "--results", folder)
    plain, early = tree / "plain" / STUDY, tree / "early" / STUDY
    specs = [json.loads(path.read_text())["spec"] for path in early.glob("*/run.json")]
    assert {spec["link"]["early_pkts"] for spec in specs} == {5}
    assert longest_queue(plain) == LIMIT_PKTS
    assert 5 < longest_queue(early) < 40, "forty need thirty packets in a row that enter with chance 1/2"
    assert "early drop from 5" in (early / "report.html").read_text()
