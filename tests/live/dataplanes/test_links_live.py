"""Links between real hosts: loss, marks, traces, classes, paths per packet, a machine that stands still."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import topos
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.engine import MininetEngine
from engines.emulation.hosts.network import FabricNet
from engines.emulation.outside import UNKEPT
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.traffic.driver import TrafficDriver
from engines.emulation.traffic.iperf3 import Iperf3Traffic
from engines.emulation.traffic.native import NativeDriver
from engines.engine import Silent
from fabric.plan import PAYLOAD_SHARE
from model.flows import FIRST_CPORT, FIRST_PORT, PlannedFlow
from model.links import LinkTrace, packed
from model.result import RunResult
from model.spec import (
    ELASTIC,
    OF_ALL,
    QDISC,
    STRICT,
    LinkSpec,
    NoiseSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support.machine_noise import exact, only_noise, run_once
from tests.support.sandboxed import report

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

RATE_MBPS = 10.0
LOSS = 0.01
MARK_PKTS = 8


@pytest.fixture(scope="module")
def lossy(engine: MininetEngine, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A permutation of TCP flows on links that lose, behind queues that mark."""
    wanted = RunSpec(
        link=LinkSpec(RATE_MBPS, loss=LOSS, ecn_pkts=MARK_PKTS),
        topology=TopologySpec("fat_tree", {"k": 4}),
        traffic="native",
        warmup_s=2.0,
        seconds=5.0,
    )
    return run_once(engine, wanted, tmp_path_factory.mktemp("raw"), calmly=True)


def test_links_between_switches_lose_what_they_should_and_hosts_links_nothing(lossy: RunResult) -> None:
    links = [port for port in lossy.ports if "host" not in port.layer.split("-")]
    sent, lost = sum(port.tx_packets for port in links), sum(port.lost for port in links)
    # What was under way when the window opened and closed is counted in one of the two only.
    edges = sum(port.max_queue_pkts for port in links) * LOSS
    assert abs(lost - sent * LOSS) < 5 * math.sqrt(sent * LOSS) + edges
    with exact():
        assert sum(port.lost for port in lossy.ports) == lost == lossy.metrics["lost"] > 0


def test_every_packet_has_one_fate(lossy: RunResult) -> None:
    after = lossy.provenance["counters"]["after"]
    with exact():
        assert after["injected"] == sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))


def test_losses_are_made_good(lossy: RunResult) -> None:
    assert all(flow.goodput_mbps > 0 for flow in lossy.flows)
    retransmits = sum(flow.retransmits for flow in lossy.flows)
    assert retransmits >= 0.3 * lossy.metrics["lost"], "most are data, not ACKs"


def test_hosts_negotiate_ecn_and_react_to_the_marks(lossy: RunResult) -> None:
    assert lossy.provenance["sysctls"]["net.ipv4.tcp_ecn"] == "1"
    assert lossy.metrics["marked"] == sum(port.marked for port in lossy.ports) > 0
    assert lossy.provenance["kernel_counters"]["TcpExt.TCPDeliveredCE"] > 0
    assert all(port.max_queue_pkts >= MARK_PKTS for port in lossy.ports if port.marked)


ON_OFF = LinkTrace(np.repeat([1, 0], [50, 50]))
"""12 Mb/s for 50 ms, then nothing for 50 ms."""


def test_goodput_is_what_the_trace_allows(engine: MininetEngine, tmp_path: Path) -> None:
    wanted = RunSpec(
        LinkSpec(50.0, trace=packed(ON_OFF)),
        TopologySpec("dumbbell", {"n": 1}),
        workload=WorkloadSpec("against_tcp"),
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
    )
    result = run_once(engine, wanted, tmp_path)
    (flow,) = result.flows
    allowed_mbps = ON_OFF.mean_mbps * PAYLOAD_SHARE
    assert 0.85 * allowed_mbps < flow.goodput_mbps < 1.03 * allowed_mbps
    after = result.provenance["counters"]["after"]
    with exact():
        assert after["injected"] == sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))


INTOLERANT = {"net.ipv4.tcp_recovery": "1", "net.ipv4.tcp_min_rtt_wlen": "300"}
"""The kernel's defaults."""


def scattered(
    engine: MininetEngine, routing: str, raw: Path, sysctls: Mapping[str, str] | None = None
) -> RunResult:
    wanted = RunSpec(
        link=LinkSpec(20.0),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(sysctls=sysctls or {}),
        routing=routing,
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
    )
    return run_once(engine, wanted, raw, calmly=True)


@pytest.mark.parametrize("routing", ["drill:2:1", "letflow:2000"])
def test_switches_that_choose_carry_tcp_and_its_pings(
    engine: MininetEngine, routing: str, tmp_path: Path
) -> None:
    wanted = RunSpec(
        link=LinkSpec(20.0),
        topology=TopologySpec("leaf_spine", {"leaves": 2, "spines": 4, "hosts": 4, "speed": 1}),
        workload=WorkloadSpec("stride", {"i": 4}),
        routing=routing,
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
        sampling=SamplingSpec(pings_ms=200),
    )
    result = run_once(engine, wanted, tmp_path)
    assert only_noise(result), result.reasons
    assert all(flow.goodput_mbps > 1 for flow in result.flows)
    assert all(flow.pings_sent > flow.pings_lost for flow in result.flows)
    after = result.provenance["counters"]["after"]
    with exact():
        assert after["injected"] == sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))
        for leaf in ("l0", "l1"):
            sent = [
                port.tx_packets for port in result.ports if port.node == leaf and port.peer.startswith("s")
            ]
            assert len(sent) == 4 and min(sent) > 0
            if routing.startswith("drill"):
                assert max(sent) < 1.1 * min(sent) + 100


@pytest.fixture(scope="module")
def results(engine: MininetEngine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunResult]:
    raw = tmp_path_factory.mktemp("raw")
    return {
        "hashed": scattered(engine, "hashed", raw),
        "scatter": scattered(engine, "scatter", raw),
        "intolerant": scattered(engine, "scatter", raw, INTOLERANT),
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


EXPEDITED = 46
WARMUP_S, SECONDS = 2.0, 3.0
STAR = topos.build("star", {"n": 3})


def two_flows() -> tuple[PlannedFlow, PlannedFlow]:
    """Return flows from the first two hosts to the third; the second flow has the higher class."""
    first, second, receiver = (STAR.nodes[host].name for host in STAR.hosts)
    ips = {STAR.nodes[nic.host].name: nic.ip for nic in STAR.nics}
    to = ips[receiver]
    return (
        PlannedFlow(0, first, receiver, ips[first], to, FIRST_PORT, FIRST_CPORT),
        PlannedFlow(1, second, receiver, ips[second], to, FIRST_PORT + 1, FIRST_CPORT, dscp=EXPEDITED),
    )


def of_classes(inside: Inside) -> int:
    """Report the goodput of both flows in Mb/s, with the discipline and the traffic driver of the request.

    Seconds are of the fabric's clock, by which its links have their exact rates on any machine.
    """
    discipline, traffic = inside.request["discipline"], inside.request["traffic"]
    link = LinkSpec(RATE_MBPS, queue_pkts=50, discipline=discipline)
    spec = RunSpec(link, TopologySpec("star", {"n": 3}))
    plane = DATAPLANES["fabric"].make(spec, STAR, Path("/tmp"), Caller())
    flows = two_flows()
    with ExitStack() as stack:
        net = stack.enter_context(FabricNet(STAR, plane))
        hosts = {host.name: host for host in net.host_refs()}
        driver: TrafficDriver
        if traffic == "iperf3":
            driver = stack.enter_context(Iperf3Traffic(flows, hosts, Path("/tmp"), seconds=60))
        else:
            driver = stack.enter_context(NativeDriver(flows, hosts))
        driver.open()
        driver.connect(20.0)
        driver.release()
        time.sleep(WARMUP_S)
        before, began_s = driver.received(), plane.reading().now_s
        time.sleep(SECONDS)
        after, elapsed_s = driver.received(), plane.reading().now_s - began_s
        inside.report([8e-6 * ((b or 0) - (a or 0)) / elapsed_s for a, b in zip(before, after, strict=True)])
    return 0


@pytest.mark.parametrize("traffic", ["native", "iperf3"])
def test_the_higher_class_gets_the_link(traffic: str) -> None:
    usual, expedited = report(of_classes, {"discipline": "priority", "traffic": traffic})
    assert expedited > 0.95 * RATE_MBPS * PAYLOAD_SHARE
    assert usual < 0.05 * RATE_MBPS * PAYLOAD_SHARE


def test_a_fifo_does_not_look_at_classes() -> None:
    usual, expedited = report(of_classes, {"discipline": "fifo", "traffic": "native"})
    assert 0.9 * RATE_MBPS * PAYLOAD_SHARE < usual + expedited < 1.01 * RATE_MBPS * PAYLOAD_SHARE
    assert usual > 0.1 * RATE_MBPS * PAYLOAD_SHARE


SLOW_MBPS, SAMPLE_MS = 2.0, 10
TRAIN, MAX_TRAINS = 3, 0.03
"""Packets more than in the sample before (the link sends 1.7 in that time), and the share of such samples."""


def test_packets_leave_a_host_one_by_one(engine: MininetEngine, tmp_path: Path) -> None:
    """The fabric's port is as fast as the NIC before it, so it holds the frames that the NIC sends at once:
    two are HTB's burst. Unlimited TCP hands down many segments as one packet, and they pile up here: the
    queue then grew by TRAIN or more in 14 % of the samples, and otherwise never. The queue's length says
    less: while the machine stalls, the fabric's clock may stop and the NIC's does not, and what the NIC sends
    meanwhile waits in this port from then on."""
    wanted = RunSpec(
        LinkSpec(SLOW_MBPS, host_queue=QDISC),
        TopologySpec("star", {"n": 2}),
        workload=WorkloadSpec("reference"),
        warmup_s=2.0,
        seconds=4.0,
        sampling=SamplingSpec(queues_ms=SAMPLE_MS),
    )
    result = run_once(engine, wanted, tmp_path)
    (flow,) = result.flows
    (port,) = (port.port for port in result.ports if port.node == flow.src)
    queues, looks = result.samples["queues"], len(result.samples["queue_times"]["t_s"])
    assert looks > 100
    of_port = queues["pkts"][queues["port"] == port]
    assert np.mean(of_port) > 0, "the queue was sampled"
    assert np.mean(np.diff(of_port.astype(np.int64)) >= TRAIN) < MAX_TRAINS
    assert flow.goodput_mbps > 1.5


def test_switches_stop_real_hosts_instead_of_dropping_their_frames(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """Between the fabric's ports nothing is lost. A stopped host's own queue may overflow."""
    pfc = "pfc:xoff_bytes=15140,xon_bytes=12112,headroom_bytes=4542"
    wanted = RunSpec(
        link=LinkSpec(20.0, queue_pkts=0, nic_queue_pkts=100, discipline=pfc),
        topology=TopologySpec("leaf_spine", {"leaves": 2, "spines": 1, "hosts": 3, "speed": 1}),
        workload=WorkloadSpec("stride", {"i": 3}),
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
    )
    result = run_once(engine, wanted, tmp_path)
    assert only_noise(result), result.reasons
    assert result.cautions == ()
    assert sum(flow.goodput_mbps for flow in result.flows) > 0.8 * 2 * 20 * PAYLOAD_SHARE
    with exact():
        of_hosts = [
            port for port in result.ports if port.node.startswith("l0h") or port.node.startswith("l1h")
        ]
        assert len(of_hosts) == 6
        assert sum(port.drops for port in result.ports) == sum(port.drops for port in of_hosts)
        stopped = [port for port in of_hosts if port.pause_frames]
        assert stopped and all(0 < port.paused_s < 5 for port in stopped)
        assert result.metrics["pause_frames"] == sum(port.pause_frames for port in result.ports)
        after = result.provenance["counters"]["after"]
        fates = sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))
        assert 0 <= fates - after["injected"] <= 12, "the rest are pause frames under way"


STALLED_MBPS = 20.0
STALLS = NoiseSpec(OF_ALL, every_ms=60, least_ms=10, most_ms=20)
"""Stalls longer than the 7 ms that a full queue lasts, for a quarter of the time."""


def one_flow(engine: MininetEngine, clock: str) -> RunResult:
    spec = RunSpec(
        link=LinkSpec(STALLED_MBPS, queue_pkts=12),
        topology=TopologySpec("star", {"n": 2}),
        workload=WorkloadSpec("reference"),
        traffic="native",
        warmup_s=1.0,
        seconds=4.0,
        noise=STALLS,
        clock=clock,
    )
    engine.check(spec)
    return engine.run(spec, Silent(), UNKEPT)


def test_a_link_stays_full_in_the_fabric_s_time_though_the_machine_stands_still(
    engine: MininetEngine,
) -> None:
    elastic, strict = one_flow(engine, ELASTIC), one_flow(engine, STRICT)
    assert elastic.metrics["astray"] == strict.metrics["astray"] == 0
    assert 10 < elastic.metrics["clock_stretch_pct"] < 60
    assert elastic.metrics["clock_stretch_longest_ms"] > 8
    assert strict.metrics["clock_stretch_ms"] == 0
    expected_mbps = STALLED_MBPS * PAYLOAD_SHARE
    found = {clock: result.flows[0].goodput_mbps / expected_mbps for clock, result in
             ((ELASTIC, elastic), (STRICT, strict))}  # fmt: skip
    assert 0.95 < found[ELASTIC] < 1.02
    assert found[STRICT] < 1.02, "no clock makes a link faster"
    assert elastic.metrics["late_p99_us"] < strict.metrics["late_p99_us"]
