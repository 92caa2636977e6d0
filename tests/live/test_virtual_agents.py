"""Agents in guests of the engine `linux`: their windows, their delay in virtual time, and what happens when
they fail. Needs no root, but a kernel (`refabric kernel build`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ccp.names import OwnAlgorithm
from engines.linux.kernel.store import current
from model.spec import AgentSpec, RunSpec, TransportSpec
from tests.live.test_virtual_linux import rows, run
from tests.support.agents.faults import (
    FIXED,
    SWITCHES,
    WINDOW_PKTS,
    acting,
    agents_reasons,
    check_raised,
    check_reno_went_on,
    check_switches,
    check_window_is_the_agents,
    killed,
    point,
    raising,
)

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(current() is None, reason="no kernel for guests: run `refabric kernel build`"),
]
DELAY_US = 50_000.0
"""Two and a half round trips of the link."""
DOUBLING = """\
        if report.t_us - flow.created_us > 3_000_000 and flow.state is None:
            flow.state = report.t_us
            flow.set(cwnd_bytes=2 * WINDOW * flow.mss)
"""


def virtual(cc: str, subflows: int = 1, **changes: object) -> RunSpec:
    return dataclasses.replace(point(cc, subflows), engine="linux", **changes)  # type: ignore[arg-type]


def test_the_window_in_a_guest_is_the_agents(tmp_path: Path) -> None:
    result = run(virtual(OwnAlgorithm("fixed.py", FIXED)), tmp_path)
    check_window_is_the_agents(result)
    assert result.metrics["agent_unreported"] == 0


def test_a_flow_in_a_guest_changes_between_programs(tmp_path: Path) -> None:
    check_switches(run(virtual(OwnAlgorithm("mine.py", SWITCHES)), tmp_path))


def test_subflows_under_an_agent_give_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    spec = dataclasses.replace(
        virtual("ccp:reno"),
        transport=TransportSpec(4, "ccp:reno"),
        agent=AgentSpec(jitter_us=500.0),
    )
    first, again = (run(spec, tmp_path / name) for name in ("a", "b"))
    assert {row.cc for row in first.flows} == {"ccp:reno"}
    assert {row.subflows_joined for row in first.flows} == {4}
    assert first.metrics["agent_reports"] > 0
    assert not agents_reasons(first)
    assert rows(first) == rows(again)
    assert first.metrics == again.metrics


def test_a_command_takes_effect_after_the_delay_that_the_run_asks_for(tmp_path: Path) -> None:
    """The kernel carries it out at its time, which no reading of a clock and no other event delays."""
    algorithm = acting("doubles.py", DOUBLING.replace("WINDOW", str(WINDOW_PKTS)))
    late_us = {}
    for delay_us in (0.0, DELAY_US):
        spec = virtual(algorithm, agent=AgentSpec(delay_us=delay_us))
        result = run(spec, tmp_path / f"{delay_us:g}")
        assert not agents_reasons(result)
        late_us[delay_us] = result.metrics["agent_most_late_us"]
        sockets = result.samples["sockets"].columns
        assert sockets["cwnd_pkts"][-1] == 2 * WINDOW_PKTS
    assert late_us[DELAY_US] < 1.0, "the timer is exact"
    assert late_us[0.0] < 20.0, "the agent needs a few readings of the clock"


def test_an_algorithm_that_raises_in_a_guest_makes_the_point_suspect(tmp_path: Path) -> None:
    check_raised(run(virtual(raising()), tmp_path))


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_without_an_agent_reno_goes_on_in_a_guest(sent: str, tmp_path: Path) -> None:
    check_reno_went_on(run(virtual(killed(sent)), tmp_path))
