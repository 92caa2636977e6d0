"""Random loss and ECN marking as real TCP meets them: where they happen, how often, and TCP's reaction."""

from __future__ import annotations

import math

import pytest

from engines.emulation.engine import MininetEngine
from model.result import PortRow, RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec
from tests.support.machine_noise import exact, run_once

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

RATE_MBPS = 10.0
LOSS = 0.01
MARK_PKTS = 8


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A permutation of TCP flows on links that lose, behind queues that mark."""
    wanted = RunSpec(
        link=LinkSpec(RATE_MBPS, loss=LOSS, ecn_pkts=MARK_PKTS),
        topology=TopologySpec("fat_tree", {"k": 4}),
        traffic="native",
        warmup_s=2.0,
        seconds=5.0,
    )
    engine = MininetEngine()
    try:
        return run_once(engine, wanted, tmp_path_factory.mktemp("raw"), calmly=True)
    finally:
        engine.close()


def between_switches(result: RunResult) -> list[PortRow]:
    return [port for port in result.ports if "host" not in port.layer.split("-")]


def test_links_between_switches_lose_what_they_should_and_hosts_links_nothing(result: RunResult) -> None:
    links = between_switches(result)
    sent, lost = sum(port.tx_packets for port in links), sum(port.lost for port in links)
    # What was under way when the window opened and closed is counted in one of the two only.
    edges = sum(port.max_queue_pkts for port in links) * LOSS
    assert abs(lost - sent * LOSS) < 5 * math.sqrt(sent * LOSS) + edges
    with exact():
        assert sum(port.lost for port in result.ports) == lost == result.metrics["lost"] > 0


def test_every_packet_has_one_fate(result: RunResult) -> None:
    after = result.provenance["counters"]["after"]
    with exact():
        assert after["injected"] == sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))


def test_losses_are_made_good(result: RunResult) -> None:
    assert all(flow.goodput_mbps > 0 for flow in result.flows)
    retransmits = sum(flow.retransmits for flow in result.flows)
    assert retransmits >= 0.3 * result.metrics["lost"], "most are data, not ACKs"


def test_hosts_negotiate_ecn_and_react_to_the_marks(result: RunResult) -> None:
    assert result.provenance["sysctls"]["net.ipv4.tcp_ecn"] == "1"
    assert result.metrics["marked"] == sum(port.marked for port in result.ports) > 0
    assert result.provenance["kernel_counters"]["TcpExt.TCPDeliveredCE"] > 0
    assert all(port.max_queue_pkts >= MARK_PKTS for port in result.ports if port.marked)
