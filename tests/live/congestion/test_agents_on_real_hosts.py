"""Congestion control by an agent between real hosts: windows it sets, and what happens when it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ccp.names import OwnAlgorithm
from engines.emulation.engine import MininetEngine
from engines.emulation.machine import bpf_support
from engines.engine import Silent
from model.result import RunResult
from model.spec import RunSpec
from tests.support.agents.faults import (
    FIXED,
    SWITCHES,
    agents_reasons,
    check_raised,
    check_reno_went_on,
    check_switches,
    check_window_is_the_agents,
    killed,
    point,
    raising,
    unknown_program,
)

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.physics,
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
]


def run(spec: RunSpec, tmp_path: Path) -> RunResult:
    engine = MininetEngine()
    try:
        engine.check(spec)
        return engine.run(spec, Silent(), tmp_path)
    finally:
        engine.close()


def test_the_window_is_the_agents(tmp_path: Path) -> None:
    check_window_is_the_agents(run(point(OwnAlgorithm("fixed.py", FIXED)), tmp_path))


def test_a_flow_changes_between_programs(tmp_path: Path) -> None:
    check_switches(run(point(OwnAlgorithm("mine.py", SWITCHES)), tmp_path))


def test_a_program_that_is_not_the_algorithms_leaves_reno(tmp_path: Path) -> None:
    result = run(point(unknown_program()), tmp_path)
    assert "there is no program 'nope'; the programs are: main" in agents_reasons(result)[0]
    assert result.flows[0].goodput_mbps > 5


def test_subflows_of_mptcp_are_under_the_agent(tmp_path: Path) -> None:
    result = run(point("ccp:reno", subflows=2), tmp_path)
    assert result.flows[0].cc == "ccp:reno"
    assert result.metrics["agent_reports"] > 0
    assert not agents_reasons(result)


def test_an_algorithm_that_raises_makes_the_point_suspect(tmp_path: Path) -> None:
    check_raised(run(point(raising()), tmp_path))


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_without_an_agent_reno_goes_on(sent: str, tmp_path: Path) -> None:
    check_reno_went_on(run(point(killed(sent)), tmp_path))
