"""What the kill matrix goes through, and the faults that it must find, made up here: nothing is killed."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.command import main
from harness.metrics import summary_csv
from harness.results.store import Store
from model.reasons import AGENT, Reason
from model.result import Status
from tests.soak.kill_matrix import (
    BESIDE,
    CHAIN,
    RUNS,
    WORDS,
    Cell,
    broken,
    cells,
    differences,
    findings,
    lost_its_agent,
    shape,
    unfinished,
    unnoticed,
)
from tests.support import chart_files, leftovers
from tests.support.leftovers import Snapshot, compare
from tests.support.stored_points import EXPERIMENT, put, result_of, spec_of


def test_every_kind_of_process_and_every_phase_is_in_the_matrix() -> None:
    made = cells()
    assert len(set(made)) == len(made)
    assert {*CHAIN, *WORDS, *BESIDE, "worker", "agent"} == {cell.role for cell in made}
    assert set(RUNS) == {cell.run for cell in made}
    assert {"start", "calibration", "traffic", "collecting", "publishing"} <= {cell.phase for cell in made}
    for cell in made:
        other = "SIGSTOP" if cell.signal == "SIGKILL" else "SIGKILL"
        assert Cell(cell.run, cell.role, cell.phase, other) in made


def test_a_fault_is_found_again_in_the_findings() -> None:
    kill = {"cell": "fabric: SIGKILL to host at traffic", "hit": True, "faults": ["left behind: veth"]}
    end = {"run": "fabric", "faults": ["fabric: is not complete"]}
    assert findings([kill, {**kill, "hit": False, "faults": []}, end]) == {
        "kills": 1,
        "came_too_late": 1,
        "cells": [kill["cell"]],
        "completed": 0,
        "faults": ["left behind: veth", "fabric: is not complete"],
    }


def test_a_point_that_does_not_report_a_killed_program_is_a_fault(tmp_path: Path) -> None:
    store = Store.open(tmp_path, EXPERIMENT)
    first = put(store, spec_of(1), result_of([1.0]))
    assert unnoticed(store.directory, [first.name]) == []
    (fault,) = unnoticed(store.directory, [])
    assert "does not say that a program ended: ok" in fault
    ended = dataclasses.replace(
        result_of([1.0]), status=Status.SUSPECT, reasons=(Reason(AGENT, "agent: it ended"),)
    )
    assert not lost_its_agent(store.directory)
    second = put(store, spec_of(2), ended)
    assert lost_its_agent(store.directory)
    assert unnoticed(store.directory, [first.name]) == []
    put(store, spec_of(2), result_of([], Status.FAILED, "Traceback: a bug"))
    assert "traceback" in unnoticed(store.directory, [first.name])[0]
    assert unfinished(store.directory) == [f"{second.name}, which failed"]
    (store.directory / ".old-x").mkdir()
    assert unfinished(store.directory)[0] == ".old-x"


def test_a_simulated_number_of_its_own_is_unlike_an_undisturbed_run(tmp_path: Path) -> None:
    spec = dataclasses.replace(spec_of(1), engine="simulator")
    shapes = []
    for name, goodput_mbps in (("undisturbed", 1.0), ("same", 1.0), ("other", 1.1)):
        store = Store.open(tmp_path / name, EXPERIMENT)
        put(store, spec, result_of([goodput_mbps]))
        summary_csv.write(store, store.read().points)
        (store.directory / "charts").mkdir()
        shapes.append(shape(store.directory))
    undisturbed, same, other = shapes
    assert differences(undisturbed, same) == []
    (found,) = differences(undisturbed, other)
    assert "tables/flows.csv" in found


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a finished sweep."""
    results = tmp_path_factory.mktemp("soak")
    options = ("--engine", "fake", "--k", "4", "--subflows", "1,2", "--qmon", "--results", str(results))
    with pytest.MonkeyPatch.context() as patch:
        chart_files.draw_all(patch)
        assert CliRunner().invoke(main, ("run", EXPERIMENT, *options)).exit_code == 0
    return results / EXPERIMENT


@pytest.fixture
def copy(sweep: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sweep, tmp_path / EXPERIMENT)


def point(directory: Path) -> Path:
    return next(directory.glob("*mptcp2*"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "/points": lambda d: shutil.rmtree(point(d)),
    "/broken": lambda d: (point(d) / "run.json").write_text("{"),
    "/unfinished": lambda d: (d / ".tmp-half").mkdir(),
    "/charts": lambda d: next((d / "charts").iterdir()).unlink(),
    "/files": lambda d: (point(d) / "raw" / "fake.txt").unlink(),
    "/summary": lambda d: (d / "summary.csv").write_text("a\n1\n"),
}


@pytest.mark.parametrize("where", DAMAGE)
def test_what_is_missing_or_too_much_is_another_shape(sweep: Path, copy: Path, where: str) -> None:
    assert differences(shape(sweep), shape(copy)) == [] and len(shape(copy)["points"]) == 3
    DAMAGE[where](copy)
    assert any(where in line for line in differences(shape(sweep), shape(copy)))


def test_what_a_kill_must_not_leave_is_reported(copy: Path) -> None:
    (copy / "summary.csv").rename(copy / "later.csv")
    assert broken(copy) == [], "it had no time for a summary"
    sample = point(copy) / "samples" / "goodput.csv.gz"
    sample.write_bytes(sample.read_bytes()[:-20])
    (fault,) = broken(copy)
    assert str(sample) in fault
    DAMAGE["/summary"](copy)
    assert len(broken(copy)) == 2
    DAMAGE["/broken"](copy)
    assert any("run.json" in fault for fault in broken(copy))


@pytest.mark.parametrize("left", [["congestion controls", "BPF links"], ["BPF links", "processes"]])
def test_another_runs_congestion_control_is_waited_for(
    left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([{kind: ("rf_lia",) for kind in left}] * 3)
    monkeypatch.setattr(leftovers, "snapshot", lambda _: next(seen, {}))
    gone = leftovers.wait_until_gone({}, seconds=0.0)
    assert gone == ([f"{kind}: rf_lia" for kind in left] if "processes" in left else [])


UNDO = "[1.5] WARNING: CPU: 0 PID: {pid} at ./include/net/tcp.h:1434 tcp_undo_cwnd_reduction+0xbd/0xd0"
OTHER = "[1.6] WARNING: CPU: 1 PID: 1 at net/mptcp/protocol.c:100 mptcp_recvmsg+0x1/0x2"
OF_PROCESS_1 = UNDO.format(pid=1)


def kernel(taint: int, *warnings: str) -> Snapshot:
    return {"kernel taint": (str(taint),), "kernel warnings": warnings}


@pytest.mark.skipif(not Path("/proc/1/task/1").exists(), reason="process 1 is hidden")
def test_a_window_that_the_kernel_made_up_in_process_1_is_not_left_behind() -> None:
    assert compare(kernel(0), kernel(512, OF_PROCESS_1)) == []
    assert compare(kernel(1), kernel(513, OF_PROCESS_1)) == []
    again = compare(kernel(512, OF_PROCESS_1), kernel(512, OF_PROCESS_1, OTHER))
    assert again == [f"kernel warnings: {OTHER}"]


@pytest.mark.parametrize(
    "after",
    [
        kernel(512),  # no warning explains the taint
        kernel(512, OTHER),
        kernel(512, UNDO.format(pid=os.getpid())),  # a program of ours gave such a window
        kernel(512, OF_PROCESS_1, OTHER),
        kernel(512 | 128, OF_PROCESS_1),  # an oops as well
    ],
)
def test_any_other_warning_of_the_kernel_is_left_behind(after: Snapshot) -> None:
    assert f"kernel taint: {after['kernel taint'][0]}" in compare(kernel(0), after)
