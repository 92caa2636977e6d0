"""Commands on stored results: edited ones are named, and each file of a point is read once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.command import main
from harness.results import run_json, store, tables
from harness.results.store import scan
from tests.support.edited_results import DAMAGE, EDITED, SWEEP, copied, refabric, simulated
from tests.support.stored_points import EXPERIMENT

COMMANDS = {
    "plot": ("plot", EXPERIMENT, "--json"),
    "status": ("status", EXPERIMENT, *SWEEP, "--warmup", "0.5", "--json"),
    "report": ("report", EXPERIMENT),
    "results": ("results", "--json"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("original"))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_run_wrote_is_whole(original: Path, command: str) -> None:
    done = refabric(*COMMANDS[command], "--results", original.parent)
    assert done.exit_code == 0
    assert "refabric: " not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_an_edited_point_is_named_and_left_out(
    original: Path, tmp_path: Path, damage: str, command: str
) -> None:
    folder = copied(original, tmp_path)
    (point,) = folder.glob(EDITED)
    edit, file = DAMAGE[damage]
    edit(point)
    done = refabric(*COMMANDS[command], "--results", tmp_path)
    assert done.exit_code == 1
    assert [str(point / file) in line for line in done.stderr.splitlines() if "refabric: " in line] == [True]
    if command == "status":
        states = [json.loads(line) for line in done.stdout.splitlines()]
        assert [one["status"] for one in states if one["point"] == point.name] == ["damaged"]
    if command == "results":
        assert json.loads(done.stdout)["damaged"] == 1


def test_a_run_repeats_an_edited_point(original: Path, tmp_path: Path) -> None:
    folder = copied(original, tmp_path)
    (point,) = folder.glob(EDITED)
    before = (point / "flows.csv").read_bytes()
    DAMAGE["all goodputs 95"][0](point)
    refabric("run", EXPERIMENT, *SWEEP, "--warmup", "0.5", "--results", tmp_path)
    assert (point / "flows.csv").read_bytes() == before


RUN = ("run", EXPERIMENT, "--engine", "fake", "--k", "4")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often each file of a point was read."""
    found: Counter[Path] = Counter()
    read_run, read_rows = run_json.read_run, tables.read_rows

    def counted_run(path: Path) -> dict[str, Any]:
        found[path] += 1
        return read_run(path)

    def counted_rows(path: Path, *more: Any) -> Any:
        found[path] += 1
        return read_rows(path, *more)

    monkeypatch.setattr(store, "read_run", counted_run)
    monkeypatch.setattr(tables, "read_rows", counted_rows)
    return found


def fine(results: Path, *arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments, "--results", str(results)])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.usefixtures("drawn")
def test_a_run_reads_stored_and_new_points_once(tmp_path: Path, reads: Counter[Path]) -> None:
    fine(tmp_path, *RUN, "--subflows", "1,2")
    reads.clear()
    fine(tmp_path, *RUN, "--subflows", "1,2,8")
    folders = [point.path for point in scan(tmp_path / EXPERIMENT).points]
    assert len(folders) == 4, "the baseline and three points"
    # The scan just above is the second read.
    assert {path: count for path, count in reads.items() if count > 1} == {
        folder / "run.json": 2 for folder in folders
    }


def test_status_reads_each_point_once(tmp_path: Path, reads: Counter[Path]) -> None:
    fine(tmp_path, *RUN, "--subflows", "1,2")
    reads.clear()
    assert "3 stored in all" in fine(tmp_path, "status", *RUN[1:], "--subflows", "1,2")
    assert set(reads.values()) == {1}
    assert {path.name for path in reads} == {"run.json"} and len(reads) == 3


@pytest.mark.usefixtures("sketched")
def test_what_was_read_before_is_not_read_again(tmp_path: Path, reads: Counter[Path]) -> None:
    fine(tmp_path, *RUN, "--subflows", "1,2")
    reads.clear()
    fine(tmp_path, *RUN, "--subflows", "1,2")
    assert {path.name for path in reads} == {"run.json"}
    assert set(reads.values()) == {1}


def test_a_damaged_point_that_was_run_again_is_not_reported(tmp_path: Path) -> None:
    fine(tmp_path, *RUN, "--subflows", "1,2")
    damaged = next((tmp_path / EXPERIMENT).glob("*mptcp2*/flows.csv"))
    damaged.write_text("")
    report = ["report", EXPERIMENT, "--results", str(tmp_path)]
    assert CliRunner().invoke(main, report).exit_code == 1
    page = tmp_path / EXPERIMENT / "report.html"
    assert damaged.parent.name in page.read_text()
    assert str(damaged) in fine(tmp_path, *RUN, "--subflows", "1,2"), "reported when the run starts"
    assert damaged.parent.name not in page.read_text()
