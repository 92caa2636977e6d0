"""docs/adding.md adds a field of the spec: its changes are applied to a copy of the tree, which then runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.tools.architecture import packages
from tests.support.tree_copy import changed_tree, changes, refabric

SECTION = "A field of the spec"
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "0.5",
    "--warmup", "0.2",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changed_tree(tmp_path_factory.mktemp("copy"), SECTION)


def points(listing: str) -> list[str]:
    jobs = (json.loads(line) for line in listing.splitlines())
    return [job["point"] for job in jobs if job["event"] == "job"]


def test_it_touches_three_files() -> None:
    assert len({name for name, _ in changes(SECTION)}) == 3


def test_the_field_reaches_spec_result_label_report_and_comparison(tree: Path) -> None:
    for folder, more in (("plain", ()), ("slow", ("--processing", "50"))):
        refabric(tree, "run", "cs244-one-to-one", *POINT, *more, "--results", folder)
    assert "--processing US" in refabric(tree, "run", "--help")
    stored = tree / "slow" / "cs244-one-to-one"
    specs = [json.loads(path.read_text())["spec"] for path in stored.glob("*/run.json")]
    assert {spec["link"]["processing_us"] for spec in specs} == {50.0}
    page = (stored / "report.html").read_text().replace("</span> <span>", " ")
    assert "--processing 50" in page, "the command that repeats the run"
    assert "50 us of processing" in page, "the label of the points"
    compared = refabric(tree, "compare", "plain/cs244-one-to-one", "slow/cs244-one-to-one")
    assert "processing_us" in compared


def test_points_without_it_keep_their_names(tree: Path) -> None:
    plan = ("plan", "cs244-one-to-one", *POINT, "--json")
    argv = [str(Path(sys.executable).with_name("refabric")), *plan]
    here = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, cwd=tree)
    assert points(refabric(tree, *plan)) == points(here.stdout) != []


def test_the_copy_has_all_packages_and_finds_no_other(tree: Path) -> None:
    code = f"""
import importlib, pathlib
for name in {packages()!r}:
    found = [pathlib.Path(folder).resolve() for folder in importlib.import_module(name).__path__]
    assert found == [pathlib.Path(name).resolve()], found
"""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=60, check=False, cwd=tree, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_a_value_that_is_out_of_range_is_refused(tree: Path) -> None:
    with pytest.raises(AssertionError, match="--processing -1: must be at least 0 us"):
        refabric(tree, "plan", "cs244-one-to-one", *POINT, "--processing", "-1")
