"""An algorithm that changes between two programs in the simulator, as it does between real hosts."""

from __future__ import annotations

from pathlib import Path

from model.result import Status
from tests.engines.simulation.congestion.test_agents import mine, run
from tests.support.agents.faults import SWITCHES, check_switches, unknown_program


def test_a_flow_changes_between_programs(tmp_path: Path) -> None:
    result = run(mine(SWITCHES, tmp_path))
    assert result.status is Status.OK
    check_switches(result)


def test_an_unknown_program_leaves_reno_and_makes_the_point_suspect(tmp_path: Path) -> None:
    result = run(mine(unknown_program().text, tmp_path))
    assert result.status is Status.SUSPECT
    assert "there is no program 'nope'" in result.reasons[0].text


def test_two_runs_are_the_same(tmp_path: Path) -> None:
    spec = mine(SWITCHES, tmp_path)
    assert run(spec).flows == run(spec).flows
