"""docs/adding.md adds a congestion control, a queue discipline and a metric: its changes are applied to
copies of the tree, which then run."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.support.tree_copy import changed_tree, changes, rebuild_core, refabric

CONTROL, DISCIPLINE, METRIC = "A congestion control", "A queue discipline", "A metric"
OWN = "fabric/core/disciplines/early_drop.hpp"
LIMIT_PKTS = 100
"""What queues hold unless an option or a figure says otherwise."""
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "2",
    "--warmup", "0.5",
)  # fmt: skip
STUDY = "cs244-one-to-one"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tree with the congestion control and the discipline: one build is enough for both."""
    tree = changed_tree(tmp_path_factory.mktemp("code"), CONTROL, DISCIPLINE)
    rebuild_core(tree)
    return tree


@pytest.mark.parametrize(("section", "files"), [(CONTROL, 3), (DISCIPLINE, 3), (METRIC, 1)])
def test_few_files_change(section: str, files: int) -> None:
    assert len({name for name, _ in changes(section)} - {OWN}) == files


def means(folder: Path) -> dict[str, float]:
    """The mean goodput in Mb/s by congestion control, of the points under test."""
    with (folder / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] != "reference"]
    return {row["cc"]: float(row["goodput_mbps_mean"]) for row in rows}


@pytest.mark.builds
def test_the_congestion_control_runs_and_is_named(built: Path) -> None:
    shown = refabric(built, "run", STUDY, *POINT, "--cc", "reno,gentle", "--results", "out")
    assert "gentle" in shown
    found = means(built / "out" / STUDY)
    assert set(found) == {"reno", "gentle"}
    assert found["gentle"] != found["reno"], "another increase, other packets"
    assert 0.5 < found["gentle"] / found["reno"] < 1.5
    assert "gentle Reno" in (built / "out" / STUDY / "report.html").read_text()


def longest_queue(folder: Path) -> int:
    """Return the longest queue of a switch in packets, in the point under test."""
    (point,) = [path.parent for path in folder.glob("*/run.json") if "reference" not in path.parent.name]
    with (point / "ports.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["layer"].startswith("host-")]
    return max(int(row["max_queue_pkts"]) for row in rows)


@pytest.mark.builds
def test_the_discipline_drops_early_and_is_named(built: Path) -> None:
    for folder, more in (("plain", ()), ("early", ("--early-drop", "5"))):
        refabric(built, "run", STUDY, *POINT, *more, "--results", folder)
    plain, early = built / "plain" / STUDY, built / "early" / STUDY
    specs = [json.loads(path.read_text())["spec"] for path in early.glob("*/run.json")]
    assert {spec["link"]["early_pkts"] for spec in specs} == {5}
    assert longest_queue(plain) == LIMIT_PKTS
    assert 5 < longest_queue(early) < 40, "forty need thirty packets in a row that enter with chance 1/2"
    assert "early drop from 5" in (early / "report.html").read_text()


def test_the_metric_reaches_every_table(tmp_path: Path) -> None:
    tree = changed_tree(tmp_path, METRIC)
    runs = [refabric(tree, "run", STUDY, *POINT, "--seed", seed, "--results", f"seed{seed}") for seed in "12"]
    assert all(re.search(r"\brange\b.*\n.*Mb/s", shown) for shown in runs)
    with (tree / "seed1" / STUDY / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ranges = {row["workload"]: float(row["goodput_range_mbps"]) for row in rows}
    assert ranges["reference"] == 0, "one flow"
    assert ranges["one_to_one"] > 0
    assert "range" in (tree / "seed1" / STUDY / "report.html").read_text()
    assert "goodput_range_mbps" in refabric(tree, "compare", f"seed1/{STUDY}", f"seed2/{STUDY}", "--json")
