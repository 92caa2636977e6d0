"""Congestion controls on real kernels: shares of MPTCP beside TCP, which path carries the data, and
DCTCP's short queue at full throughput, measured against drop-tail in one session."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from analysis.shares import bottleneck_shares_pct, congested_shares_pct
from engines.emulation.engine import MininetEngine
from engines.emulation.machine import bpf_support
from experiments import dctcp as experiment
from harness.options.options import resolve
from model.reasons import texts
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.machine_noise import doubts, exact, run_once, skip_if_repaired
from tests.support.options import options_typed

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

LANES = 4
SUBFLOWS = 4
RARELY_LOST = LinkSpec(60.0, delay_us=6000, queue_pkts=1000, nic_queue_pkts=1000, loss=0.005)
"""A window of 17 packets in 36 ms: loss decides, nothing fills."""


def against_tcp(engine: MininetEngine, cc: str, raw: Path) -> RunResult:
    return run_once(
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
    if not bpf_support().ok:
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
    result = run_once(engine, wanted, tmp_path)
    sent = {(port.node, port.peer): port.tx_bytes for port in result.ports}
    for lane in range(2):
        alone = sent[f"l{lane}b", f"r{lane}b"]
        assert alone == pytest.approx(sent[f"l{lane}h0", f"l{lane}b"], rel=0.1)
        shared = sent[f"l{lane}h0", f"l{lane}a"] + sent[f"l{lane}ah1", f"l{lane}a"]
        assert sent[f"l{lane}a", f"r{lane}a"] == pytest.approx(shared, rel=0.2)
    shares = congested_shares_pct(result.ports)
    assert len(shares) == 2
    assert all(0 < share < 60 for share in shares), "TCP is on the first path"


def queue(result: RunResult) -> npt.NDArray[np.int64]:
    """Return the bottleneck's queue length at every sampled instant of the window."""
    busiest = max((p for p in result.ports if p.layer == "edge-host"), key=lambda port: port.tx_bytes)
    times = np.unique(result.samples["queue_times"]["t_s"])
    table = result.samples["queues"]
    lengths = np.zeros(len(times), np.int64)
    mine = table["port"] == busiest.port
    lengths[np.searchsorted(times, table["t_s"][mine])] = table["pkts"][mine]
    return lengths[times >= 0]


def test_dctcp_keeps_a_short_queue_at_full_throughput(engine: MininetEngine, tmp_path: Path) -> None:
    """The experiment's own points, shorter. A repetition runs them again."""
    if not bpf_support().ok:
        pytest.skip(bpf_support().text)
    options = resolve(options_typed(seconds=5.0, warmup=3.0, traffic="native"), experiment.DEFAULTS)
    points = experiment.QUEUE.figures[0].points(options, lambda _: options.rate_mbps or 0.0)
    drop_tail, dctcp = (run_once(engine, points[number], tmp_path, calmly=True) for number in (0, 2))
    with exact():
        assert drop_tail.metrics["marked"] == 0
        assert dctcp.metrics["marked"] > 100
        assert {flow.cc for flow in dctcp.flows} == {"dctcp"}
    skip_if_repaired(drop_tail, dctcp)
    why = texts(reason for result in (drop_tail, dctcp) for reason in doubts(result))
    threshold = experiment.DEFAULTS["link.ecn_pkts"]
    (low, median), (low_before, median_before) = (
        [float(np.percentile(queue(result), share)) for share in (10, 50)] for result in (dctcp, drop_tail)
    )
    assert low <= threshold, why
    assert low < low_before / 5, why
    assert threshold / 2 <= median <= 1.5 * threshold, why
    assert median < median_before / 5, why
    got, before = (sum(flow.goodput_mbps for flow in result.flows) for result in (dctcp, drop_tail))
    assert got >= 0.95 * before, why
