"""What the kill matrix goes through, and what it says in the end; without a kill."""

from __future__ import annotations

from tests.soak.cells import Cell, cells
from tests.soak.kill_matrix import findings


def test_every_kind_of_process_and_every_phase_is_in_the_matrix() -> None:
    made = cells()
    assert len(set(made)) == len(made)
    kinds = {"parent", "inner", "host", "traffic", "controller", "ovs-vswitchd", "worker", "cluster worker"}
    assert kinds <= {cell.role for cell in made}
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
