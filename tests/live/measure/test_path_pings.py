"""Pings on real networks: their paths by the ports' counters, their times by what the links allow."""

from __future__ import annotations

import math
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from common.errors import RunError
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.routing import path
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.namespaces import HostRef, call_in_netns
from engines.emulation.measure.path_pings import PathPinger, PingReadings, Probe, probes_for
from engines.emulation.sandbox.inside import Inside
from model.flows import STRIDE, PlannedFlow, planned_flows
from model.links import downlink, uplink
from model.network_plan import plan_for
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, sub_seed
from tests.support.machine_noise import exact
from tests.support.sandboxed import report
from topos import Topology

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

FRAME_BYTES = 64 + 8 + 20 + 14
PACKET_MS = 1514 * 8 / 1000
"""Of a full-size packet at 1 Mb/s."""


class Lab(NamedTuple):
    spec: RunSpec
    topology: Topology
    plane: FabricDataPlane
    hosts: dict[str, HostRef]


@contextmanager
def lab(spec: RunSpec) -> Iterator[Lab]:
    topology = spec.network()
    plane = FabricDataPlane(topology, plan_for(spec, topology), default_tuning(spec.link.rate_mbps))
    with FabricNet(topology, plane) as net:
        yield Lab(spec, topology, plane, {host.name: host for host in net.host_refs()})


def crossed(lab: Lab, flows: tuple[PlannedFlow, ...], probe: Probe) -> list[int]:
    """Return the ports that this subflow's data and ACKs pass, by the routing's own path function."""
    flow = flows[probe.flow]
    there = FiveTuple(probe.src_ip, probe.dst_ip, PROTO_TCP, flow.cport + probe.subflow * STRIDE, flow.port)
    back = FiveTuple(there.dst, there.src, PROTO_TCP, there.dport, there.sport)
    tables, seed = ecmp_groups(lab.topology), sub_seed(lab.spec.seed, "routing")
    ports = []
    for five_tuple in (there, back):
        nodes = path(lab.topology, tables, lab.spec.routing, seed, five_tuple)
        source = lab.topology.nic_by_ip(five_tuple.src)
        target = lab.topology.nic_by_ip(five_tuple.dst)
        ports.append(uplink(source.link))
        for a, b in pairwise(nodes[1:-1]):
            link = lab.topology.link_between(a, b)
            ports.append(uplink(link) if lab.topology.links[link].a == a else downlink(link))
        ports.append(downlink(target.link))
    return ports


def idle(inside: Inside) -> int:
    """Send four pings along every subflow of an idle tree with long links."""
    kind, policy = inside.request
    spec = RunSpec(
        LinkSpec(100, delay_us=1000), TopologySpec(kind, {"k": 4}), TransportSpec(4), routing=policy
    )
    with lab(spec) as net:
        flows = planned_flows(spec, net.topology)
        probes = probes_for(spec, net.topology, flows)
        way = {(probe.flow, probe.subflow): crossed(net, flows, probe) for probe in probes}
        with PathPinger(probes, net.hosts, interval_ms=200) as pinger:
            pinger.start()
            time.sleep(0.75)
            pinger.pause()
            time.sleep(0.1)
            seen = pinger.take(final=True)
        counters = net.plane.snapshot()
        expected = np.zeros(len(counters["tx_packets"]), np.int64)
        for flow, subflow in zip(seen.flow.tolist(), seen.subflow.tolist(), strict=True):
            np.add.at(expected, way[flow, subflow], 1)
        lost = np.isnan(seen.rtt_ms)
        hops = np.array(
            [len(way[f, s]) for f, s in zip(seen.flow.tolist(), seen.subflow.tolist(), strict=True)]
        )
        inside.report(
            {
                "probes": len(probes),
                "pings": len(seen),
                "counts": np.unique(seen.flow * 100 + seen.subflow, return_counts=True)[1].tolist(),
                "gaps_ms": (np.diff(seen.sent_s) * 1000).tolist(),
                "lost": int(lost.sum()),
                "excess_ms": (seen.rtt_ms - hops).tolist(),
                "uneven_ms": (seen.out_ms - seen.back_ms).tolist(),
                "expected": expected.tolist(),
                "crossed": counters["tx_packets"].tolist(),
                "bytes": int(counters["tx_bytes"].sum()),
            }
        )
    return 0


def _star(rate_mbps: float) -> RunSpec:
    return RunSpec(LinkSpec(rate_mbps, nic_queue_pkts=100), TopologySpec("star", {"n": 2}), TransportSpec(1))


def _one_probe(net: Lab) -> list[Probe]:
    return probes_for(net.spec, net.topology, planned_flows(net.spec, net.topology))[:1]


def _burst(net: Lab, probe: Probe, packets: int) -> float:
    """Send full-size packets at once on the probe's first link; return the monotonic time of the first."""
    sock = call_in_netns(net.hosts[probe.src].pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        start_s = time.monotonic()
        for _ in range(packets):
            sock.sendto(bytes(1472), (probe.dst_ip, 9))
    return start_s


def _rows(seen: PingReadings) -> dict[str, list[float]]:
    columns: dict[str, npt.NDArray[np.float64]] = {
        "sent_s": seen.sent_s,
        "rtt_ms": seen.rtt_ms,
        "out_ms": seen.out_ms,
        "back_ms": seen.back_ms,
    }
    return {name: column.tolist() for name, column in columns.items()}


def full_queue(inside: Inside) -> int:
    """Send 95 packets of 1500 bytes to a 1 Mb/s link, then pings."""
    with lab(_star(1)) as net:
        probes = _one_probe(net)
        with PathPinger(probes, net.hosts, interval_ms=200, lost_after_s=inside.request) as pinger:
            start_s = _burst(net, probes[0], 95)
            pinger.start()
            time.sleep(0.3)
            early = pinger.take()
            time.sleep(1.6)
            inside.report({"start_s": start_s, "early": len(early), **_rows(pinger.take())})
    return 0


def cut_link(inside: Inside) -> int:
    """Cut a link and bring it back; then take a host's own interface down."""
    with lab(_star(10)) as net:
        with PathPinger(_one_probe(net), net.hosts, interval_ms=50, lost_after_s=0.2) as pinger:
            pinger.start()
            time.sleep(0.3)
            net.plane.set_link(0, up=False)
            down_s = time.monotonic()
            time.sleep(0.5)
            net.plane.set_link(0, up=True)
            up_s = time.monotonic()
            time.sleep(0.5)
            inside.report(
                {"down_s": down_s, "up_s": up_s, **_rows(pinger.take()), "rest": len(pinger.take(final=True))}
            )
        inside.report({"error": _with_interface_down(net)})
    return 0


def _with_interface_down(net: Lab) -> str:
    (probe,) = _one_probe(net)
    down = ["ip", "link", "set", net.topology.nic_by_ip(probe.src_ip).name, "down"]
    with PathPinger([probe], net.hosts, interval_ms=10) as pinger:
        call_in_netns(net.hosts[probe.src].pid, lambda: subprocess.run(down, check=True))
        pinger.start()
        time.sleep(0.2)
        try:
            pinger.take()
        except RunError as error:
            return str(error)
    return ""


def taken_port(_inside: Inside) -> int:
    """Occupy the port that a probe needs."""
    with lab(_star(10)) as net:
        (probe,) = _one_probe(net)
        sock = call_in_netns(
            net.hosts[probe.dst].pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        )
        with sock:
            sock.bind((probe.dst_ip, probe.dport))
            PathPinger([probe], net.hosts, interval_ms=10)
    return 0


@pytest.mark.parametrize(
    ("kind", "policy"), [("fat_tree", "hashed"), ("fat_tree", "ecmp"), ("dual_homed_fat_tree", "hashed")]
)
def test_pings_cross_exactly_the_ports_of_their_subflows(kind: str, policy: str) -> None:
    seen = report(idle, (kind, policy))
    assert seen["probes"] == (64 if kind == "fat_tree" else 96)
    assert set(seen["counts"]) <= {3, 4}, "one every 200 ms, for 750 ms"
    assert len(seen["counts"]) == seen["probes"]
    assert seen["lost"] == 0
    with exact():
        assert seen["crossed"] == seen["expected"]
    assert seen["bytes"] == FRAME_BYTES * sum(seen["crossed"])
    assert min(seen["excess_ms"]) > 0, "a link's delay is 1 ms"
    assert statistics.median(seen["excess_ms"]) < 3
    assert abs(statistics.median(seen["uneven_ms"])) < 1, "there and back are of one length"
    assert statistics.median(seen["gaps_ms"]) < 2 * 200 / seen["probes"] + 1, "spread over the interval"


def test_a_full_queue_is_felt() -> None:
    seen = report(full_queue, 30.0)
    assert seen["early"] == 0, "none is back after 0.3 s, and none is lost"
    drained_s = seen["start_s"] + 95 * PACKET_MS / 1000
    behind = [i for i, sent_s in enumerate(seen["sent_s"]) if sent_s < drained_s - 0.1]
    assert len(behind) >= 4
    for i in behind:
        arrived_s = seen["sent_s"][i] + seen["out_ms"][i] / 1000
        assert -0.001 < arrived_s - drained_s < 0.05, "it left when all before it had"
        assert seen["back_ms"][i] < 20, "the way back is empty"
    assert 1000 < seen["rtt_ms"][0] < 95 * PACKET_MS + 50
    assert seen["rtt_ms"][-1] < 20, "the queue has drained"


def test_a_late_answer_is_not_taken_for_anothers() -> None:
    seen = report(full_queue, 0.5)
    late = [math.isnan(rtt_ms) for rtt_ms in seen["rtt_ms"]]
    assert late[:3] == [True] * 3
    assert not late[-1]
    assert all(rtt_ms <= 500 for rtt_ms in seen["rtt_ms"] if not math.isnan(rtt_ms))
    assert seen["rtt_ms"][-1] < 20


def test_a_cut_link_loses_pings_until_it_heals() -> None:
    seen = report(cut_link)
    for sent_s, rtt_ms in zip(seen["sent_s"], seen["rtt_ms"], strict=True):
        if seen["down_s"] + 0.01 < sent_s < seen["up_s"] - 0.01:
            assert math.isnan(rtt_ms)
        elif sent_s < seen["down_s"] - 0.05 or sent_s > seen["up_s"] + 0.01:
            assert 0 < rtt_ms < 20
    assert 8 <= sum(map(math.isnan, seen["rtt_ms"])) <= 11
    assert "sending a ping to 10.0.0.2:" in seen["error"]
    assert "unreachable" in seen["error"]


def test_a_port_that_is_taken_is_named() -> None:
    with pytest.raises(RunError, match=r"binding UDP 10\.0\.0\.2:4\d+ on s1h1 for pings"):
        report(taken_port)
