"""Faults of agents between real hosts: impossible commands, two agents at once, thousands of flows."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from ccp.names import OwnAlgorithm
from common.errors import RunError
from engines.emulation.congestion.agent import AgentDatapath
from engines.emulation.machine import bpf_support
from model.result import Status
from model.spec import LinkSpec, TopologySpec, WorkloadSpec
from tests.live.congestion.test_agents_on_real_hosts import run
from tests.support.agents.faults import FIXED, WINDOW_PKTS, agents_reasons, point

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
]
COMMAND = f"flow.set(cwnd_bytes={WINDOW_PKTS} * flow.mss)"


def commanding(command: str) -> OwnAlgorithm:
    assert COMMAND in FIXED
    return OwnAlgorithm("fails.py", FIXED.replace(COMMAND, command))


@pytest.mark.parametrize("command", ["flow.set(cwnd_bytes=0)", "flow.set(cwnd_bytes=1)"])
def test_the_minimum_window_is_two_packets(command: str, tmp_path: Path) -> None:
    result = run(point(commanding(command)), tmp_path)
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {2}
    assert not agents_reasons(result)


def test_the_largest_command_is_a_window_like_any_other(tmp_path: Path) -> None:
    result = run(point(commanding("flow.set(cwnd_bytes=2**63 - 1)")), tmp_path)
    sockets = result.samples["sockets"].columns
    assert max(sockets["cwnd_pkts"][sockets["t_s"] >= 0]) == 2**20
    assert result.flows[0].goodput_mbps > 1
    assert not agents_reasons(result)


@pytest.mark.parametrize("command", ["flow.set(cwnd_bytes=-1)", "flow.set(rate_bps=2**63)"])
def test_numbers_out_of_range_leave_reno(command: str, tmp_path: Path) -> None:
    result = run(point(commanding(command)), tmp_path)
    assert result.status is Status.SUSPECT
    assert "must be from 0 to 2^63 - 1" in agents_reasons(result)[0]
    assert result.flows[0].goodput_mbps > 1


def test_a_second_agent_is_refused_and_the_first_goes_on() -> None:
    first = AgentDatapath(point("ccp:reno"))
    try:
        with pytest.raises(RunError, match="the kernel already has one"):
            AgentDatapath(point("ccp:cubic"))
        assert first.stop().outcome.alive
    finally:
        first.close()


def test_thousands_of_flows_have_an_agent_each(tmp_path: Path) -> None:
    spec = dataclasses.replace(
        point("ccp:reno"),
        link=LinkSpec(20.0, delay_us=1000.0),
        topology=TopologySpec("star", {"n": 6}),
        workload=WorkloadSpec("to_one", {"load": 50, "sizes": "fixed-3000"}),
        seconds=5.0,
    )
    result = run(spec, tmp_path)
    done = [flow for flow in result.flows if flow.completed_s < 100]
    assert len(result.flows) > 2000
    assert len(done) > 0.9 * len(result.flows)
    assert result.metrics["agent_unreported"] == 0
    assert result.metrics["agent_failed_flows"] == 0
    assert result.metrics["agent_acks"] > len(done)
