"""Simulated hosts in a lossless network: nobody loses a packet, senders wait, deadlocks are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.plausibility import deadlock
from common.errors import UsageError
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from model.reasons import DEADLOCK
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec

PFC = "pfc:xoff_bytes=15140,xon_bytes=12112,headroom_bytes=9000"
LOSSLESS = LinkSpec(100.0, delay_us=10.0, queue_pkts=0, nic_queue_pkts=10, discipline=PFC)


def run(link: LinkSpec, matrix: str, **fields: Any) -> RunResult:
    given: dict[str, Any] = {
        "topology": TopologySpec("fat_tree", {"k": 4}),
        "transport": TransportSpec(1, "reno"),
        "engine": "simulator",
        "warmup_s": 0.2,
        "seconds": 0.5,
    }
    spec = RunSpec(link=link, workload=WorkloadSpec(matrix), **{**given, **fields})
    engine = SimulatorEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), Path())


@pytest.mark.parametrize("matrix", ["one_to_one", "random"])
def test_tcp_loses_nothing_and_ports_are_stopped(matrix: str) -> None:
    result = run(LOSSLESS, matrix)
    assert result.metrics["drops"] == result.metrics["retransmits"] == 0
    assert result.metrics["pause_frames"] == sum(port.pause_frames for port in result.ports) > 0
    stopped = [port for port in result.ports if port.pause_frames]
    assert all(0 < port.paused_s < 0.5 for port in stopped)
    assert any(port.layer == "host-edge" for port in stopped), "hosts' ports are stopped, too"
    uplinks = [port for port in result.ports if port.layer == "host-edge"]
    assert max(port.max_queue_pkts for port in uplinks) < 60, "senders wait; acknowledgements do not"
    assert not [each for each in result.cautions if each.kind == DEADLOCK]


def test_a_sender_that_is_never_stopped_has_the_goodput_of_a_fifo() -> None:
    fifo = LinkSpec(100.0, delay_us=10.0, queue_pkts=0, nic_queue_pkts=10)
    alone: dict[str, Any] = {"topology": TopologySpec("star", {"n": 2}), "stack": StackSpec(receive_buffer=8)}
    lossless, plain = (run(link, "one_to_one", **alone) for link in (LOSSLESS, fifo))
    assert lossless.metrics["pause_frames"] == 0
    assert lossless.flows[0].goodput_mbps == pytest.approx(plain.flows[0].goodput_mbps, rel=0.002)


def test_constant_rates_wait_for_room_in_their_host() -> None:
    result = run(LOSSLESS, "beside_constant_rate", topology=TopologySpec("dumbbell", {"n": 2}))
    assert result.metrics["drops"] == 0


@pytest.mark.parametrize(
    ("kind", "params", "routing"),
    [("leaf_spine", {"leaves": 4}, "valiant"), ("jellyfish", {"switches": 20}, "ksp:8")],
)
def test_detours_come_to_a_deadlock_which_is_said(kind: str, params: dict[str, int], routing: str) -> None:
    """Paths go up again after they went down, so links wait for one another in a cycle."""
    result = run(LOSSLESS, "one_to_one", topology=TopologySpec(kind, params), routing=routing)
    assert [each.kind for each in result.cautions][:1] == [DEADLOCK]
    assert sum(flow.goodput_mbps == 0 for flow in result.flows) > len(result.flows) / 2


def test_a_deadlock_is_a_caution_that_names_ports() -> None:
    names = [("a", "b", "x"), ("b", "c", "x"), ("c", "a", "x")]
    (caution,) = deadlock([0, 2], names)
    assert caution.kind == DEADLOCK
    assert "a-b, c-a" in caution.text
    assert deadlock([], names) == ()


def test_a_limit_of_ports_is_refused() -> None:
    spec = RunSpec(LinkSpec(10.0, discipline="pfc"), TopologySpec("fat_tree", {"k": 4}), engine="simulator")
    with pytest.raises(UsageError, match="add --queue 0"):
        SimulatorEngine().check(spec)
