"""PacketScatter: every packet takes a path of its own, and TCP does not mistake that for loss."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path

import pytest

from engines.emulation.engine import MininetEngine
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec
from tests.support.machine_noise import run_once

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

INTOLERANT = {"net.ipv4.tcp_recovery": "1", "net.ipv4.tcp_min_rtt_wlen": "300"}
"""The kernel's defaults."""


def run(routing: str, raw: Path, sysctls: Mapping[str, str] | None = None) -> RunResult:
    wanted = RunSpec(
        link=LinkSpec(20.0),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(sysctls=sysctls or {}),
        routing=routing,
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
    )
    engine = MininetEngine()
    try:
        return run_once(engine, wanted, raw, calmly=True)
    finally:
        engine.close()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunResult]:
    raw = tmp_path_factory.mktemp("raw")
    return {
        "hashed": run("hashed", raw),
        "scatter": run("scatter", raw),
        "intolerant": run("scatter", raw, INTOLERANT),
    }


def uneven(result: RunResult) -> list[tuple[str, str]]:
    """Return pairs of equal uplinks whose loads differ by more than paths drawn per packet explain."""
    found = []
    for port in result.ports:
        for other in result.ports:
            same = port.node == other.node and port.peer < other.peer and port.layer == other.layer
            if same and port.layer in {"edge-agg", "agg-core"}:
                drawn = port.tx_packets + other.tx_packets
                if abs(port.tx_packets - other.tx_packets) > 5 * math.sqrt(drawn) + 100:
                    found.append((port.peer, other.peer))
    return found


def test_packets_are_dealt_evenly_over_equal_ways(results: dict[str, RunResult]) -> None:
    """Check each of the 16 switches that have a choice; up to 100 packets wait at the window's ends."""
    assert not uneven(results["scatter"])
    assert len(uneven(results["hashed"])) >= 5, "hashed flows, in contrast, are uneven"


def test_scattered_flows_do_not_collide(results: dict[str, RunResult]) -> None:
    goodput = {name: statistics.fmean(f.goodput_mbps for f in r.flows) for name, r in results.items()}
    assert goodput["scatter"] > 1.2 * goodput["hashed"]
    slowest = {name: min(f.goodput_mbps for f in result.flows) for name, result in results.items()}
    assert slowest["scatter"] > 2 * slowest["hashed"]


def test_reordering_is_not_taken_for_loss(results: dict[str, RunResult]) -> None:
    """Receivers report duplicates (DSACK, RFC 2883), which are unnecessary retransmissions."""
    spurious = {
        name: result.provenance["kernel_counters"].get("TcpExt.TCPDSACKRecvSegs", 0)
        for name, result in results.items()
    }
    assert results["scatter"].provenance["kernel_counters"]["TcpExt.TCPSACKReorder"] > 1000
    assert spurious["scatter"] < spurious["intolerant"] / 4


def test_what_is_asked_for_explicitly_is_what_hosts_get(results: dict[str, RunResult]) -> None:
    assert results["intolerant"].provenance["sysctls"].items() >= INTOLERANT.items()
    assert results["scatter"].provenance["sysctls"]["net.ipv4.tcp_recovery"] == "5"
