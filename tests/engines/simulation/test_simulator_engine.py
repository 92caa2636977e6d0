"""The engine as its users call it: results, samples, checks, and the memory that it estimates."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.errors import RunError, UsageError
from engines.engine import Silent
from engines.registry import make
from engines.simulation import readings
from engines.simulation.engine import check, check_memory, estimated_mb
from model.flows import drawn_flows
from model.result import SAMPLE_COLUMNS, RunResult, Status
from model.spec import (
    LinkEvent,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support.simulated_networks import result_of
from tests.support.topologies import with_first_link

ALONE = WorkloadSpec("reference")
FRAME, PAYLOAD = 1514, 1448
EVERYTHING = SamplingSpec(queues_ms=10, sockets_ms=50, pings_ms=50)


def spec(**fields: Any) -> RunSpec:
    """Return a quarter of a second on a k=4 tree at 20 Mb/s, with these fields."""
    usual: dict[str, Any] = {
        "link": LinkSpec(20.0),
        "topology": TopologySpec("fat_tree", {"k": 4}),
        "transport": TransportSpec(2, "lia"),
        "engine": "simulator",
        "warmup_s": 0.1,
        "seconds": 0.25,
    }
    return RunSpec(**{**usual, **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"stack": StackSpec(acks="at_once"), "link": LinkSpec(20.0, ecn_pkts=10)}, "at_once with ECN"),
        ({"stack": StackSpec(acks="at_once"), "transport": TransportSpec(1, "dctcp")}, "at_once with ECN"),
        ({"transport": TransportSpec(1, "bbr")}, "no congestion control 'bbr': choose from: reno"),
        ({"transport": TransportSpec(1, "reno", {"net.ipv4.tcp_sack": "0"})}, "--sysctl net.ipv4.tcp_sack=0"),
        ({"transport": TransportSpec(1, "reno", write_bytes=9)}, "--write 9: simulated hosts have no kernel"),
        ({"events": (LinkEvent(0.1, "p0e0", "moon"),)}, "no node called 'moon'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make("simulator").check(spec(**fields))


def test_dctcp_needs_queues_that_mark() -> None:
    unmarked = spec(transport=TransportSpec(2, "dctcp"))
    with pytest.raises(UsageError, match=r"no queue marks packets, .* add --ecn"):
        make("simulator").check(unmarked)
    make("simulator").check(dataclasses.replace(unmarked, link=LinkSpec(10.0, ecn_pkts=20)))
    make("simulator").check(dataclasses.replace(unmarked, workload=ALONE))


def test_real_hosts_refuse_what_only_simulated_ones_do() -> None:
    real = spec(engine="mininet", transport=TransportSpec())
    stack = dataclasses.replace(real, stack=StackSpec(sack=False, min_rto_ms=10))
    with pytest.raises(UsageError, match=r"stack sack=off: real hosts use .* choose --engine simulator"):
        make("mininet").check(stack)
    with pytest.raises(UsageError, match="congestion control coupled: no kernel has it"):
        make("mininet").check(dataclasses.replace(real, transport=TransportSpec(2, "coupled")))


def test_one_flow_alone_fills_its_links_to_the_segment() -> None:
    result = result_of(spec(workload=ALONE, transport=TransportSpec(), warmup_s=0.2, seconds=1.0))
    (flow,) = result.flows
    assert result.status is Status.OK
    assert flow.bytes_received / 1e6 == pytest.approx(20 / 8 * PAYLOAD / FRAME, abs=2 * PAYLOAD / 1e6)
    busy = [port for port in result.ports if port.utilisation_pct > 50]
    assert len(busy) == 6  # up and down through the core
    for port in busy:
        assert port.utilisation_median_pct == pytest.approx(100.0, abs=0.2)


def test_a_run_in_which_nothing_arrives_is_no_result() -> None:
    with pytest.raises(RunError, match=r"no flow delivered a byte in 0.35 s at 20 Mb/s: simulate longer"):
        result_of(spec(link=LinkSpec(20.0, delay_us=1e6)))


def test_queues_without_limit_grow_and_lose_nothing() -> None:
    link = LinkSpec(20.0, queue_pkts=0, nic_queue_pkts=0)
    result = result_of(spec(workload=ALONE, transport=TransportSpec(), link=link, warmup_s=0.5, seconds=1.0))
    (flow,) = result.flows
    assert flow.goodput_mbps == pytest.approx(20 * PAYLOAD / FRAME, rel=0.01)
    assert result.metrics["drops"] == 0
    assert max(port.max_queue_pkts for port in result.ports) > 300


def test_tables_are_those_every_engine_has() -> None:
    result = result_of(spec(sampling=EVERYTHING))
    flows, subflows = 16, 32
    assert set(result.samples) == {*SAMPLE_COLUMNS}
    assert len(result.samples["cpu"]) == 0
    assert set(np.unique(result.samples["goodput"]["t_s"])) == {0.0, 0.25}
    assert len(result.samples["goodput"]) == 2 * flows
    times = result.samples["queue_times"]["t_s"].tolist()
    assert times == [round(0.01 * n, 9) for n in range(26)]
    assert result.samples["queues"]["pkts"].min() >= 1
    switches = [port for port in result.ports if not port.layer.startswith("host-")]
    assert result.samples["queues"]["pkts"].max() <= max(port.max_queue_pkts for port in result.ports)
    assert max(port.max_queue_pkts for port in switches) <= 100
    sockets = result.samples["sockets"]
    assert set(sockets["t_s"].tolist()) == {round(0.05 * n, 9) for n in range(-2, 6)}
    assert len(sockets) == 8 * subflows
    assert len(result.samples["pings"]) == 6 * subflows
    assert not set(result.metrics) & {"cpu_busy_pct", "late_p99_us", "setup_s"}
    last = sockets["t_s"] == 0.25
    acked = np.bincount(sockets["flow"][last], sockets["bytes_acked"][last], minlength=flows)
    assert (acked >= [flow.bytes_received * 0.5 for flow in result.flows]).all()


def test_pings_and_sockets_agree_on_how_long_a_round_trip_is() -> None:
    """On a full path smoothed round trips are what a probe finds, but for the probe's own size."""
    link = LinkSpec(20.0, delay_us=100, queue_pkts=50)
    wanted = spec(workload=ALONE, transport=TransportSpec(), link=link, sampling=EVERYTHING, warmup_s=1.0)
    (flow,) = result_of(wanted).flows
    assert flow.pings_sent == 6
    assert flow.pings_lost == 0
    assert flow.ping_ms_mean > 2 * 6 * 0.1
    assert flow.srtt_ms_mean == pytest.approx(flow.ping_ms_mean, rel=0.35)
    quiet = result_of(dataclasses.replace(wanted, routing="scatter")).samples
    assert "pings" not in quiet  # its packets take several paths


@pytest.mark.parametrize("routing", ["letflow:500", "drill:2:1", "conga:500:160", "presto:64"])
def test_paths_that_switches_choose_follow_from_the_seed(routing: str) -> None:
    leaf_spine = TopologySpec("leaf_spine", {"leaves": 2, "spines": 4, "hosts": 4, "speed": 1})
    wanted = spec(topology=leaf_spine, transport=TransportSpec(), routing=routing)
    once, again = result_of(wanted), result_of(wanted)
    assert once.flows == again.flows and once.ports == again.ports
    assert min(flow.goodput_mbps for flow in once.flows) > 1
    other = result_of(dataclasses.replace(wanted, routing="ecmp"))
    assert [port.tx_packets for port in once.ports] != [port.tx_packets for port in other.ports]


def test_the_longest_queue_is_of_the_window_alone() -> None:
    """What waits while the middle link is slow is lost when it is cut, before the window opens."""
    wanted = spec(
        workload=ALONE,
        transport=TransportSpec(),
        topology=TopologySpec("dumbbell", {"n": 1, "lanes": 1}),
        stack=StackSpec(receive_buffer=20),
        events=tuple(LinkEvent(t_s, "l0", "r0", share) for t_s, share in ((0.05, 0.1), (0.2, 0), (0.21, 1))),
    )
    after = result_of(dataclasses.replace(wanted, warmup_s=0.3))
    whole = result_of(dataclasses.replace(wanted, warmup_s=0.0, seconds=0.3))
    (late,) = (port.max_queue_pkts for port in after.ports if (port.node, port.peer) == ("l0", "r0"))
    (ever,) = (port.max_queue_pkts for port in whole.ports if (port.node, port.peer) == ("l0", "r0"))
    assert late <= 2
    assert ever >= 15


def test_a_cut_link_carries_nothing_until_it_is_mended() -> None:
    (flow,) = result_of(spec(workload=ALONE, transport=TransportSpec())).flows
    cut = (LinkEvent(0.05, flow.src, "p0e0", 0.0),)
    (dead,) = result_of(spec(workload=ALONE, transport=TransportSpec(), events=cut)).flows
    assert dead.bytes_received == 0
    mended = (*cut, LinkEvent(0.06, flow.src, "p0e0", 1.0))
    (alive,) = result_of(spec(workload=ALONE, transport=TransportSpec(), events=mended, warmup_s=1.0)).flows
    assert alive.goodput_mbps == pytest.approx(20 * PAYLOAD / FRAME, rel=0.01)
    half = (LinkEvent(0.0, flow.src, "p0e0", 0.5),)
    (slow,) = result_of(spec(workload=ALONE, transport=TransportSpec(), events=half, warmup_s=0.5)).flows
    assert slow.goodput_mbps == pytest.approx(10 * PAYLOAD / FRAME, rel=0.03)


def test_sampling_is_bounded_at_any_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "MAX_ROWS", 500)
    notes: list[str] = []
    observer = Silent()
    monkeypatch.setattr(observer, "note", notes.append, raising=False)
    samples = make("simulator").run(spec(sampling=SamplingSpec(1, 1, 1)), observer, Path("/nowhere")).samples
    assert all(0 < len(samples[name]) <= 500 for name in ("queues", "sockets", "pings", "links"))
    assert any("queues are sampled every" in note for note in notes)


@pytest.mark.parametrize("slice_hops", [1, 50_000])
def test_how_time_is_sliced_changes_nothing(slice_hops: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = result_of(spec(sampling=EVERYTHING))
    monkeypatch.setattr(readings, "SLICE_HOPS", slice_hops)
    monkeypatch.setattr(readings, "FIRST_SLICE_PS", 10**7)
    monkeypatch.setattr(readings, "MIN_SLICE_PS", 10**8)
    assert decisive(result_of(spec(sampling=EVERYTHING))) == decisive(whole)


def decisive(result: RunResult) -> RunResult:
    """Return the result without what depends on the machine."""
    return dataclasses.replace(result, provenance={}, cost={})


def test_another_seed_is_another_result() -> None:
    first, again, other = (decisive(result_of(spec(seed=seed))) for seed in (1, 1, 2))
    assert first == again != other


def spec_of(k: int = 4, subflows: int = 8, **link: Any) -> RunSpec:
    return RunSpec(
        LinkSpec(100.0, **link),
        TopologySpec("fat_tree", {"k": k}),
        TransportSpec(subflows, "lia"),
        engine="simulator",
    )


def estimate(spec: RunSpec) -> float:
    topology = spec.network()
    return estimated_mb(spec, topology, drawn_flows(spec, topology))


def test_what_is_larger_takes_more() -> None:
    small = estimate(spec_of())
    for larger in (
        spec_of(k=8),
        spec_of(subflows=16),
        spec_of(queue_pkts=400),
        spec_of(queue_pkts=0),
        spec_of(queue_bytes=10**6),
        spec_of(delay_us=1000.0),
    ):
        assert estimate(larger) > small


def test_a_long_queue_of_one_link_counts() -> None:
    spec = spec_of()
    topology = spec.network()
    longer = with_first_link(topology, queue_pkts=10_000)
    flows = drawn_flows(spec, topology)
    assert estimated_mb(spec, longer, flows) > estimated_mb(spec, topology, flows) + 1


def test_a_queue_in_bytes_counts_as_the_packets_it_holds() -> None:
    assert estimate(spec_of(queue_bytes=100 * 1514)) == pytest.approx(estimate(spec_of(queue_pkts=100)))


@pytest.mark.parametrize(
    ("k", "parts", "measured"),
    [
        (8, 1, 50),
        (16, 1, 103),
        (32, 1, 446),
        (8, 2, 54),
        (8, 8, 81),
        (16, 2, 103),
        (16, 8, 128),
        (32, 4, 389),
    ],
)
def test_measured_points_are_met_and_parts_counted(k: int, parts: int, measured: int) -> None:
    # Peaks of processes that simulated 0.04 to 0.12 s, in MB.
    spec = spec_of(k=k, delay_us=0.0 if parts > 1 else 10.0)
    divided = dataclasses.replace(spec, parts=parts)
    assert estimate(divided) == pytest.approx(measured, rel=0.3)
    assert parts == 1 or estimate(divided) > estimate(spec)


def test_what_does_not_fit_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.simulation.engine.free_memory_mb", lambda: 50.0)
    check(spec_of())
    with pytest.raises(UsageError, match=r"128 hosts and 1024 subflows takes about \d+ MB .* 50 MB are free"):
        check(spec_of(k=8, queue_pkts=0))


@pytest.mark.parametrize(("queue_pkts", "advice"), [(100, "fewer --subflows"), (0, "a limit to --queue")])
def test_the_advice_fits_the_point(queue_pkts: int, advice: str) -> None:
    spec = spec_of(queue_pkts=queue_pkts)
    topology = spec.network()
    flows = drawn_flows(spec, topology)
    enough = estimated_mb(spec, topology, flows)
    check_memory(spec, topology, flows, enough)
    with pytest.raises(UsageError) as refused:
        check_memory(spec, topology, flows, enough - 1)
    assert re.search(f"{advice}$", str(refused.value))
