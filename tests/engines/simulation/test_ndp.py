"""NDP and its switches (Handley et al., SIGCOMM 2017): what they deliver, and what engines refuse."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from common.errors import UsageError
from engines.engine import Silent
from engines.kernel_hosts import check_spec
from engines.registry import make
from engines.simulation.engine import SimulatorEngine
from harness.baseline import baseline_of
from harness.results.store import point_name
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from model.transports import title, transport
from tests.fabric.test_queue_laws import BYTES, Overload

HEADER = 66
PAPER = StackSpec(payload_bytes=8936, header_bytes=64, ack_bytes=64)
"""Packets of 9 kB."""


def ndp(matrix: str = "one_to_one", **fields: Any) -> RunSpec:
    given: dict[str, Any] = {
        "link": LinkSpec(1000.0, delay_us=1.0, discipline="trim", queue_pkts=0),
        "topology": TopologySpec("fat_tree", {"k": 4}),
        "transport": TransportSpec(protocol="ndp"),
        "workload": WorkloadSpec(matrix),
        "engine": "simulator",
        "warmup_s": 0.01,
        "seconds": 0.05,
    }
    return RunSpec(**{**given, **fields})


def run(spec: RunSpec) -> RunResult:
    engine = SimulatorEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), Path())


def test_a_permutation_fills_the_links_without_a_loss() -> None:
    """The paper has 92 % for 432 hosts (section 6.1)."""
    result = run(ndp(stack=PAPER, link=LinkSpec(10_000.0, delay_us=1.0, discipline="trim", queue_pkts=0)))
    goodput = [flow.goodput_mbps for flow in result.flows]
    assert len(goodput) == 16
    assert min(goodput) > 8_500
    assert max(goodput) <= 10_000 * PAPER.payload_bytes / (PAPER.payload_bytes + PAPER.header_bytes) * 1.001
    assert result.metrics["drops"] == result.metrics["timeouts"] == 0
    assert {flow.transport for flow in result.flows} == {"ndp"}


def test_an_incast_ends_near_the_ideal_time_and_is_only_trimmed() -> None:
    packets = 100
    result = run(ndp("incast", workload=WorkloadSpec("incast", {"packets": packets}), warmup_s=0.0))
    ends_s = [flow.start_s + flow.completed_s for flow in result.flows]
    ideal_s = len(ends_s) * packets * (1448 + HEADER) * 8 / 1e9
    assert len(ends_s) == 15
    assert ideal_s < max(ends_s) < 1.05 * ideal_s
    assert min(ends_s) > max(ends_s) / 2, "hosts that send to one share its link"
    assert all(flow.bytes_received == flow.size_bytes for flow in result.flows)
    assert result.metrics["retransmits"] > 0, "the first windows were trimmed"
    assert result.metrics["drops"] == result.metrics["timeouts"] == 0
    assert result.metrics["injected"] == result.metrics["delivered"]


def test_the_smaller_a_window_the_less_is_trimmed() -> None:
    trimmed = [
        run(ndp("incast", transport=TransportSpec(protocol=f"ndp:window_pkts={pkts}"), warmup_s=0.0)).metrics[
            "retransmits"
        ]
        for pkts in (1, 10, 30)
    ]
    assert trimmed[0] < trimmed[1] < trimmed[2]


def test_what_links_lose_is_sent_again_after_a_timeout() -> None:
    link = LinkSpec(1000.0, delay_us=1.0, discipline="trim", queue_pkts=0, loss=0.02)
    stack = StackSpec(min_rto_ms=5.0)
    result = run(ndp("incast", link=link, stack=stack, warmup_s=0.0, seconds=2.0))
    assert result.metrics["lost"] > 0
    assert result.metrics["timeouts"] > 0
    assert all(flow.bytes_received == flow.size_bytes for flow in result.flows)
    assert result.metrics["injected"] == result.metrics["delivered"] + result.metrics["lost"]


def test_a_full_queue_trims_until_its_headers_are_full() -> None:
    load = Overload("trim", {"pkts": 2.0, "header_pkts": 3.0})
    for _ in range(10):
        load.send(0)
    load.run(10**17)
    dropped = sum(1 for _, _, _, lost, _ in load.ended if lost)
    assert dropped == load.counter("drops") == 4, "one is sent, two wait whole, three as headers"
    assert load.counter("tx_packets") == 6
    assert load.counter("tx_bytes") == 3 * BYTES + 3 * HEADER


def test_headers_go_first_but_do_not_starve_whole_packets() -> None:
    load = Overload("trim", {"pkts": 1.0, "ratio": 2.0})
    for _ in range(6):  # one is sent, one waits whole, four as headers
        load.send(0)
    load.run(10**17)
    times_us = [when / 10**6 for _, _, when, _, _ in sorted(load.ended, key=lambda each: each[2])]
    gaps = [round(b - a, 1) for a, b in itertools.pairwise(times_us)]
    header_us, whole_us = HEADER * 0.8, BYTES * 0.8
    assert gaps == pytest.approx([header_us, header_us, whole_us, header_us, header_us], abs=0.2)


def test_points_are_named_after_their_transport() -> None:
    spec = ndp()
    assert spec.transport.name == spec.transport.cc == "ndp"
    assert "-ndp-" in point_name(spec)
    assert transport(spec.transport.cc, 1) == title("ndp") == "NDP"
    assert RunSpec.from_json(spec.to_json()) == spec
    baseline = baseline_of(spec).transport
    assert (baseline.name, baseline.cc) == ("tcp", "reno")


FIFO_LINK = LinkSpec(1000.0)
TRIM_LINK = LinkSpec(1000.0, discipline="trim", queue_pkts=0)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"link": FIFO_LINK}, "add --discipline trim --queue 0"),
        ({"transport": TransportSpec()}, "add --transport ndp"),
        ({"link": LinkSpec(1000.0, discipline="trim")}, "add --queue 0"),
        ({"stack": StackSpec(ack_bytes=80)}, "choose header_bytes=80 or more"),
        ({"routing": "ecmp"}, "leave it out"),
        ({"workload": WorkloadSpec("constant_rate")}, "choose another"),
        ({"topology": TopologySpec("bcube", {"n": 4})}, "forward packets"),
        ({"parts": 2}, "only an undivided network has the transport ndp"),
    ],
)
def test_the_simulator_refuses_what_ndp_does_not_have(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        SimulatorEngine().check(ndp(**fields))


def test_engines_without_simulated_hosts_refuse_it() -> None:
    spec = ndp()
    with pytest.raises(UsageError, match="--transport ndp: only simulated hosts have it"):
        check_spec(spec, spec.network(), ())
    for engine in ("max-min", "ideal"):
        with pytest.raises(UsageError, match="--transport ndp: only simulated hosts have it"):
            make(engine).check(spec)
    with pytest.raises(UsageError, match="choose --subflows 1"):
        TransportSpec(2, protocol="ndp")
    with pytest.raises(UsageError, match="it has its own congestion control"):
        TransportSpec(cc="dctcp", protocol="ndp")
    with pytest.raises(UsageError, match="ndp has window_pkts=30"):
        TransportSpec(protocol="ndp:windows=3")
