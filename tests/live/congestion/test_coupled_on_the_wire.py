"""MPTCP beside plain TCP on real kernels: their shares of a link, and which path carries the data."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from analysis.shares import bottleneck_shares_pct, congested_shares_pct
from engines.emulation import machine
from engines.emulation.engine import MininetEngine
from engines.engine import Silent
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.machine_noise import repeated

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

LANES = 4
SUBFLOWS = 4
RARELY_LOST = LinkSpec(60.0, delay_us=6000, queue_pkts=1000, nic_queue_pkts=1000, loss=0.005)
"""A window of 17 packets in 36 ms: loss decides, nothing fills."""


def run(engine: MininetEngine, wanted: RunSpec, raw: Path) -> RunResult:
    engine.check(wanted)
    return repeated(lambda: engine.run(wanted, Silent(), raw))


def against_tcp(engine: MininetEngine, cc: str, raw: Path) -> RunResult:
    return run(
        engine,
        RunSpec(
            link=RARELY_LOST,
            topology=TopologySpec("dumbbell", {"n": 2, "lanes": LANES}),
            transport=TransportSpec(SUBFLOWS, cc),
            workload=WorkloadSpec("against_tcp"),
            traffic="native",
            warmup_s=2.5,
            seconds=4.0,
        ),
        raw,
    )


def check_mixed(result: RunResult, cc: str) -> None:
    """Check that each replica has an MPTCP flow, with its own congestion control, and a plain TCP flow."""
    assert len(result.flows) == 2 * LANES
    for flow in result.flows:
        tested = flow.src.endswith("h0")
        asked = ("mptcp", SUBFLOWS, cc) if tested else ("tcp", 1, "reno")
        assert (flow.transport, flow.subflows_asked, flow.cc) == asked
        assert flow.subflows_joined == flow.subflows_asked


def test_uncoupled_subflows_take_a_tcps_share_each_and_coupled_ones_together(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """Four uncoupled subflows and a TCP are five TCPs, 80 %; LIA's four are one, 50 %."""
    uncoupled = against_tcp(engine, "reno", tmp_path)
    check_mixed(uncoupled, "reno")
    share = statistics.fmean(bottleneck_shares_pct(uncoupled.flows))
    assert share > 65
    if not machine.bpf_support().ok:
        pytest.skip("LIA needs BPF, which this kernel or user does not have")
    coupled = against_tcp(engine, "lia", tmp_path)
    check_mixed(coupled, "lia")
    assert statistics.fmean(bottleneck_shares_pct(coupled.flows)) < share - 10


def test_a_subflow_keeps_to_the_path_of_its_nics(engine: MininetEngine, tmp_path: Path) -> None:
    wanted = RunSpec(
        link=LinkSpec(10.0),
        topology=TopologySpec("two_bottlenecks", {"first": 1, "second": 0, "lanes": 2}),
        transport=TransportSpec(2),
        workload=WorkloadSpec("against_tcp"),
        warmup_s=1.0,
        seconds=2.0,
    )
    result = run(engine, wanted, tmp_path)
    sent = {(port.node, port.peer): port.tx_bytes for port in result.ports}
    for lane in range(2):
        alone = sent[f"l{lane}b", f"r{lane}b"]
        assert alone == pytest.approx(sent[f"l{lane}h0", f"l{lane}b"], rel=0.1)
        shared = sent[f"l{lane}h0", f"l{lane}a"] + sent[f"l{lane}ah1", f"l{lane}a"]
        assert sent[f"l{lane}a", f"r{lane}a"] == pytest.approx(shared, rel=0.2)
    shares = congested_shares_pct(result.ports)
    assert len(shares) == 2
    assert all(0 < share < 60 for share in shares), "TCP is on the first path"
