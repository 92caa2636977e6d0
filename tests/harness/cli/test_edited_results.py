"""Edited results are not shown as ok, by any command: one line names the file, and the exit code is 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
