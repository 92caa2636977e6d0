"""The core must send a flow where the pure routing functions say it goes."""

from __future__ import annotations

import dataclasses
import ipaddress
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import topos
from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple, flow_hash, mix, switch_seed
from controllers.routing import path, tables_of
from fabric import _core
from fabric.plan import NetworkPlan
from model.links import downlink, uplink
from model.network_plan import NO_PORT, network_plan, plan_for, port_names
from model.spec import LinkSpec, RunSpec, TopologySpec
from topos.topology import Builder, Layer, Topology

TCP = 6
SEED = 4242
K4, K8 = (topos.build("fat_tree", {"k": k}) for k in (4, 8))


def number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))


def plan_of(topology: Topology, link: LinkSpec, policy: str = "hashed", seed: int = SEED) -> NetworkPlan:
    return network_plan(topology, tables_of(topology, policy), link, policy, seed)


def sent_on(topology: Topology, policy: str, flow: FiveTuple, nic: int) -> Counter[tuple[int, int]]:
    """Return the hops (from node, to node) of one packet in the core, and how often it takes each."""
    fabric = _core.VirtualFabric(plan_of(topology, LinkSpec(10.0), policy))
    fabric.inject(0, nic, 1500, (number(flow.src), number(flow.dst), TCP, flow.sport, flow.dport))
    fabric.run_until(10**14)
    sent: Counter[tuple[int, int]] = Counter()
    for port, times in enumerate(fabric.counters()["tx_packets"].tolist()):
        link = topology.links[port // 2]
        sent[link.ends if port == uplink(port // 2) else link.ends[::-1]] += times
    return +sent


@pytest.mark.parametrize("policy", ["hashed", "ecmp", "wcmp", "valiant", "ksp:1", "ksp:8"])
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("fat_tree", {"k": 4}),
        ("fat_tree", {"k": 6}),
        ("star", {"n": 5}),
        ("vl2", {"da": 4, "di": 4, "servers": 3}),
        ("leaf_spine", {"leaves": 3, "hosts": 2}),
        ("bcube", {"n": 3, "k": 1}),
        ("jellyfish", {"switches": 12, "ports": 5, "servers": 2}),
    ],
)
def test_core_and_routing_agree_on_every_path(kind: str, params: dict[str, int], policy: str) -> None:
    topology = topos.build(kind, params)
    tables = tables_of(topology, policy)
    rng = random.Random(3)
    for _ in range(60):
        source, target = rng.sample(range(len(topology.nics)), 2)
        if topology.nics[source].host == topology.nics[target].host:
            continue
        ports = rng.randrange(1024, 65536), rng.randrange(1024, 65536)
        flow = FiveTuple(topology.nics[source].ip, topology.nics[target].ip, TCP, *ports)
        expected = Counter(pairwise(path(topology, tables, policy, SEED, flow)))
        assert sent_on(topology, policy, flow, source) == expected


def scattered(topology: Topology, seed: int = SEED, packets: int = 4000) -> list[int]:
    """Send packets of one flow from the first to the last host; return how many each port sent."""
    plan = plan_of(topology, LinkSpec(10.0, queue_pkts=0, nic_queue_pkts=0), "scatter", seed)
    fabric = _core.VirtualFabric(plan)
    source, target = topology.nics[0], topology.nics[-1]
    for _ in range(packets):
        fabric.inject(0, 0, 1500, (number(source.ip), number(target.ip), TCP, 1000, 80))
    fabric.run_until(10**15)
    assert fabric.counters()["delivered"] == packets
    return [int(sent) for sent in fabric.counters()["tx_packets"]]


def test_scattered_packets_of_one_flow_use_all_paths_evenly() -> None:
    by_layer: dict[str, list[int]] = {}
    for (_, _, layer), packets in zip(port_names(K8), scattered(K8), strict=True):
        if packets:
            by_layer.setdefault(layer, []).append(packets)
    ways = {"host-edge": 1, "edge-agg": 4, "agg-core": 16, "core-agg": 16, "agg-edge": 4, "edge-host": 1}
    assert {layer: len(counts) for layer, counts in by_layer.items()} == ways
    for counts in by_layer.values():
        assert sum(counts) == 4000
        assert max(abs(count - 4000 / len(counts)) for count in counts) < 5 * (4000 / len(counts)) ** 0.5


def test_scattering_is_uniform_over_whole_paths_where_next_hops_have_different_numbers_of_them() -> None:
    """Two next hops, one with a single path behind it and one with three: a quarter and three quarters."""
    net = Builder("lopsided", {})
    a, b, thin, fat, *middle = (
        net.switch(name, Layer.EDGE) for name in ("a", "b", "t", "f", "m0", "m1", "m2", "n")
    )
    for host, switch, address in (("h0", a, "10.0.0.1"), ("h1", b, "10.0.0.2")):
        net.attach(net.host(host), switch, address)
    for left, right in [(a, thin), (a, fat), (thin, middle[3]), *((fat, m) for m in middle[:3])]:
        net.link(left, right)
    for m in middle:
        net.link(m, b)
    topology = net.build()
    ends = [(one, other) for one, other, _ in port_names(topology)]
    sent = dict(zip(ends, scattered(topology), strict=True))
    assert sent["a", "t"] + sent["a", "f"] == 4000
    assert abs(sent["a", "t"] - 1000) < 5 * 750**0.5
    assert all(abs(sent[name, "b"] - 1000) < 5 * 750**0.5 for name in ("m0", "m1", "m2", "n"))


def test_scattering_follows_from_the_seed() -> None:
    assert scattered(K8, 1, 200) == scattered(K8, 1, 200) != scattered(K8, 2, 200)


def test_ports_have_the_speed_of_their_link() -> None:
    topology = topos.build("vl2", {"da": 4, "di": 4, "servers": 2})
    plan = plan_of(topology, LinkSpec(5.0, clock_ppm=0.0))
    for (_, _, layer), rate_bps in zip(port_names(topology), plan.rate_bps.tolist(), strict=True):
        assert rate_bps == (5_000_000 if "host" in layer else 50_000_000)


def test_ports_of_hosts_that_forward_are_a_switchs() -> None:
    topology = topos.build("bcube", {"n": 3, "k": 1})
    plan = plan_of(topology, LinkSpec(10.0, queue_pkts=30, nic_queue_pkts=70, loss=0.25))
    assert set(plan.queue_pkts.tolist()) == {30} and set(plan.loss.tolist()) == {0.25}
    assert set(plan.nic_uplink.tolist()) == set(plan.nic_downlink.tolist()) == {NO_PORT}
    assert plan.nic_attach_node.tolist() == [nic.host for nic in topology.nics]


def test_hosts_links_lose_nothing_and_all_ports_mark() -> None:
    plan = plan_of(K4, LinkSpec(10.0, loss=0.25, ecn_pkts=20))
    for (_, _, layer), loss in zip(port_names(K4), plan.loss.tolist(), strict=True):
        assert loss == (0.0 if "host" in layer else 0.25)
    assert set(plan.admission["ecn_pkts"].tolist()) == {20}


def test_hashes_are_the_same_in_both_languages() -> None:
    rng = random.Random(1)
    for _ in range(200):
        src, dst = rng.getrandbits(32), rng.getrandbits(32)
        sport, dport = rng.getrandbits(16), rng.getrandbits(16)
        flow = FiveTuple(str(ipaddress.IPv4Address(src)), str(ipaddress.IPv4Address(dst)), TCP, sport, dport)
        assert _core.flow_hash(src, dst, TCP, sport, dport) == flow_hash(flow)
        assert _core.mix(src, dst) == mix(src, dst)
        assert _core.switch_seed(src, sport) == switch_seed(src, sport)


def test_host_queues_have_a_capacity_of_their_own() -> None:
    spec = RunSpec(LinkSpec(10.0, queue_pkts=30, nic_queue_pkts=70), TopologySpec("fat_tree", {"k": 4}))
    plan = plan_for(spec, K4)
    nic_ports = {uplink(nic.link) for nic in K4.nics}
    for port, capacity in enumerate(plan.queue_pkts.tolist()):
        assert capacity == (70 if port in nic_ports else 30)
    assert plan.max_packets >= plan.queue_pkts.sum()


def test_ports_are_named_by_their_ends() -> None:
    names, nic = port_names(K4), K4.nics[0]
    host, edge = K4.nodes[nic.host].name, K4.nodes[nic.switch].name
    assert names[uplink(nic.link)] == (host, edge, "host-edge")
    assert names[downlink(nic.link)] == (edge, host, "edge-host")
    assert len(names) == 2 * len(K4.links)


def test_a_dual_homed_tree_forwards_within_each_plane() -> None:
    topology = topos.build("dual_homed_fat_tree", {"k": 4})
    first, last = topology.hosts[0], topology.hosts[-1]
    tables = ecmp_groups(topology)
    for a, b in zip(topology.nics_of(first), topology.nics_of(last), strict=True):
        flow = FiveTuple(a.ip, b.ip, TCP, 1000, 80)
        hops = pairwise(path(topology, tables, "hashed", SEED, flow))
        assert sent_on(topology, "hashed", flow, topology.nics.index(a)) == Counter(hops)


@pytest.mark.parametrize("policy", ["hashed", "ecmp", "scatter"])
def test_a_packet_to_a_plane_that_is_not_joined_is_dropped_and_the_core_goes_on(policy: str) -> None:
    topology = topos.build("dual_homed_fat_tree", {"k": 4})
    fabric = _core.VirtualFabric(plan_of(topology, LinkSpec(10.0), policy))
    here, there = (topology.nics_of(topology.hosts[end]) for end in (0, -1))
    for nic in there:
        fabric.inject(0, topology.nics.index(here[0]), 1500, (number(here[0].ip), number(nic.ip), TCP, 1, 2))
    log = fabric.run_until(10**14)
    assert sorted(departure[3] for departure in log) == [False, True]
    counters = fabric.counters()
    assert (counters["delivered"], counters["dropped"], counters["in_flight"]) == (1, 1, 0)


def test_a_packet_of_a_flow_that_scatters_stays_on_shortest_paths_and_a_list_has_others() -> None:
    listed = plan_of(K4, LinkSpec(10.0), "ksp:8")
    assert len(listed.list_paths) == len(plan_of(K4, LinkSpec(10.0)).nic_ip) ** 2 // 4 + 1
    assert set(np.diff(listed.list_ports).tolist()) == {2, 4, 6, 8}
    assert not len(plan_of(K4, LinkSpec(10.0)).list_paths)


@pytest.mark.parametrize(
    ("column", "change", "complaint"),
    [
        ("list_paths", lambda paths: paths[:-1], "do not fit"),
        ("list_ports", lambda ports: ports[::-1].copy(), "do not fit"),
        ("path_weight", lambda weights: 0 * weights, "without a weight"),
        ("path_weight", lambda weights: 0 * weights + np.uint32(2**31), "exceed"),
        ("path_port", lambda ports: ports + np.uint32(10_000), "does not exist"),
        ("path_port", lambda ports: ports[::-1].copy(), "before its destination"),
    ],
)
def test_the_core_refuses_lists_that_do_not_fit_the_network(
    column: str, change: Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.uint32]], complaint: str
) -> None:
    plan = plan_of(K4, LinkSpec(10.0), "ksp:4")
    changed: Any = {column: change(getattr(plan, column))}
    with pytest.raises(ValueError, match=complaint):
        _core.VirtualFabric(dataclasses.replace(plan, **changed))
