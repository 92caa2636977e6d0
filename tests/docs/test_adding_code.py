"""docs/adding.md adds a congestion control and a metric: its changes are applied to a copy of the tree, which
then runs."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.support.tree_copy import changed_tree, changes, rebuild_core, refabric

CONTROL, METRIC = "A congestion control", "A metric"
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "2",
    "--warmup", "0.5",
)  # fmt: skip
STUDY = "cs244-one-to-one"


@pytest.fixture(scope="module")
def with_control(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = changed_tree(tmp_path_factory.mktemp("control"), CONTROL)
    rebuild_core(tree, "simulation/congestion/registry.hpp")
    return tree


@pytest.mark.parametrize(("section", "files"), [(CONTROL, 3), (METRIC, 1)])
def test_few_files_change(section: str, files: int) -> None:
    assert len({name for name, _ in changes(section)}) == files


def means(folder: Path) -> dict[str, float]:
    """The mean goodput in Mb/s by congestion control, of the points under test."""
    with (folder / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] != "reference"]
    return {row["cc"]: float(row["goodput_mbps_mean"]) for row in rows}


@pytest.mark.builds
def test_the_congestion_control_runs_and_is_named(with_control: Path) -> None:
    shown = refabric(with_control, "run", STUDY, *POINT, "--cc", "reno,gentle", "--results", "out")
    assert "gentle" in shown
    found = means(with_control / "out" / STUDY)
    assert set(found) == {"reno", "gentle"}
    assert found["gentle"] != found["reno"], "another increase, other packets"
    assert 0.5 < found["gentle"] / found["reno"] < 1.5
    assert "gentle Reno" in (with_control / "out" / STUDY / "report.html").read_text()


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
