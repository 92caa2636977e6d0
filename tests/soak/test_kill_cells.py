"""The cells of the kill matrix, and its findings; nothing is killed here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from harness.metrics import summary_csv
from harness.results.store import Store
from model.reasons import AGENT, Reason
from model.result import Status
from tests.soak.cells import BESIDE, CHAIN, RUNS, WORDS, Cell, cells
from tests.soak.kill_matrix import findings
from tests.soak.shape import differences, lost_its_agent, shape, unfinished, unnoticed
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
