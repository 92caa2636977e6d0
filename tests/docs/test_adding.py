"""docs/adding.md adds a field of the spec: its changes are applied to a copy of the tree, which then runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabric import _core

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding.md"
SECTION = "## A field of the spec"
ROOMS = (
    "common", "fabric", "topos", "controllers", "workloads", "model", "analysis", "engines", "plots",
    "harness", "experiments", "refabric", "setup",
)  # fmt: skip
SITECUSTOMIZE = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""
"""Processes of the copy do not find the packages of the installed tree."""
POINT = (
    "--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10", "--seconds", "0.5",
    "--warmup", "0.2",
)  # fmt: skip


def changes(page: str) -> list[tuple[str, str]]:
    """Return the file and the diff of each numbered step of the section."""
    section = page[page.index(SECTION) :]
    section = section[: section.index("\n## ")]
    steps = re.findall(r"^\d\. .*?, in `([^`]+)`.*?```diff\n(.*?)```", section, re.DOTALL | re.MULTILINE)
    assert len(steps) == section.count("```diff"), "every diff belongs to a step that names its file"
    return steps


def applied(text: str, diff: str) -> str:
    """Return `text` with the one place that the diff fits changed as it says."""
    lines = diff.splitlines()
    before = "\n".join(line[1:] for line in lines if line[0] in " -")
    after = "\n".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"one place looks like this:\n{before}"
    return text.replace(before, after)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the page's changes."""
    copy = tmp_path_factory.mktemp("copy")
    for room in ROOMS:
        if (ROOT / room).is_dir():
            shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__", "*.hpp"))
    (copy / "sitecustomize.py").write_text(SITECUSTOMIZE)
    core = Path(_core.__file__)
    shutil.copy(core, copy / "fabric" / core.name)
    for name, diff in changes(PAGE.read_text()):
        file = copy / name
        file.write_text(applied(file.read_text(), diff))
    return copy


def refabric(tree: Path, *arguments: str) -> str:
    # On one CPU points run in the command's own process. Worker processes ignore PYTHONPATH.
    cpu = str(min(os.sched_getaffinity(0)))
    argv = ["taskset", "-c", cpu, sys.executable, "-m", "experiments.command", *arguments]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def points(listing: str) -> list[str]:
    jobs = (json.loads(line) for line in listing.splitlines())
    return [job["point"] for job in jobs if job["event"] == "job"]


def test_it_touches_three_files() -> None:
    assert len({name for name, _ in changes(PAGE.read_text())}) == 3


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


def test_a_value_that_is_out_of_range_is_refused(tree: Path) -> None:
    with pytest.raises(AssertionError, match="--processing -1: must be at least 0 us"):
        refabric(tree, "plan", "cs244-one-to-one", *POINT, "--processing", "-1")
