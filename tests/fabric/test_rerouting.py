"""Routing leaves a cut link out, and uses one that is back, a stated time after the event."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topos
from controllers.routing import DIGITS, IN_SWITCHES, POLICIES, tables_of
from fabric._core import VirtualFabric
from model.links import links_left_out
from model.network_plan import plan_for, reroutes
from model.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec
from tests.fabric.test_balancing import PACKET, US, down, flow, net, up
from topos import from_file
from topos.topology import Link, Topology

CUT_US, BACK_US, DELAY_US, END_US = 1000, 3000, 300, 5000
SPEC = RunSpec(
    LinkSpec(10_000, delay_us=1, queue_pkts=1000, nic_queue_pkts=1000, clock_ppm=0),
    TopologySpec("leaf_spine", {"leaves": 2, "spines": 4, "hosts": 4, "speed": 1}),
    engine="simulator",
    events=(LinkEvent(CUT_US / 1e6, "l1", "s0"), LinkEvent(BACK_US / 1e6, "s0", "l1", 1.0)),
    reroute_ms=DELAY_US / 1000,
)


def flows_through(policy: str, spec: RunSpec, sports: int = 64) -> tuple[list[int], list[int]]:
    """Send a packet each us from leaf 0 to leaf 1, of `sports` flows in turn. Return the times of those that
    are lost, and of those that pass spine 0, in us. The link from spine 0 to leaf 1 fails and comes back."""
    spec = replace(spec, routing=policy)
    topology = spec.network()
    core = VirtualFabric(plan_for(spec, topology))
    changes = [(round(t_s * 1e6), plan) for t_s, plan in reroutes(spec, topology)]
    lost: list[int] = []
    over: list[int] = []
    sent_at: dict[int, int] = {}
    before = 0
    for at_us in range(END_US):
        for packet, _, _, dropped, _ in core.run_until(at_us * US):
            if dropped:
                lost.append(sent_at[packet])
        for port in (up(topology, 1, 0), down(topology, 1, 0)):
            if at_us in (CUT_US, BACK_US):
                core.set_port_up(port, at_us == BACK_US, at_us * US)
        for t_us, plan in changes:
            if t_us == at_us:
                core.reroute(plan, at_us * US)
        sent_at[core.inject(at_us * US, 0, PACKET, flow(sport=1000 + at_us % sports))] = at_us
        passed = int(core.counters()["tx_packets"][up(topology, 0, 0)])
        if passed > before:
            over.append(at_us)
        before = passed
    return sorted(lost), over


def test_packets_are_lost_until_the_delay_has_passed_and_then_none() -> None:
    lost, over = flows_through("spanning-tree", SPEC, sports=1)
    # A packet takes 6 us to the end of the third link, so those of the last 5 us are under way at the cut
    assert lost == list(range(CUT_US - 5, CUT_US + DELAY_US))
    # and 3 us until the first link between switches has carried it
    assert over == [at for at in range(3, END_US) if not CUT_US + DELAY_US <= at - 3 < BACK_US + DELAY_US]


def test_without_rerouting_packets_are_lost_until_the_link_is_back() -> None:
    lost, over = flows_through("spanning-tree", replace(SPEC, reroute_ms=0.0), sports=1)
    assert set(lost) >= set(range(CUT_US - 5, BACK_US - 5))
    assert max(lost) < BACK_US
    assert over == list(range(3, END_US))


@pytest.mark.parametrize("policy", sorted(POLICIES.keys() - {DIGITS}))
def test_every_policy_reroutes(policy: str) -> None:
    short_gap = {"letflow": "letflow:50", "conga": "conga:50"}  # every packet begins a flowlet
    lost, over = flows_through(short_gap.get(policy, policy), SPEC)
    hop_by_hop = 3 if policy in IN_SWITCHES else 0  # a switch reads its table when a packet has come
    assert lost, "some packets took the link before routing knew"
    assert min(lost) >= CUT_US - 6
    assert max(lost) < CUT_US + DELAY_US
    while_out = [at for at in over if CUT_US + DELAY_US + 4 <= at < BACK_US + DELAY_US + 3 - hop_by_hop]
    if policy != "valiant":  # it may turn at a leaf and come back over spine 0
        assert not while_out
    assert [at for at in over if at >= BACK_US + DELAY_US + 3], "a link that is back is used again"


def test_a_flow_takes_the_path_that_the_policy_would_choose_without_the_link() -> None:
    topology = SPEC.network()
    link = topology.link_between(topology.index("l1"), topology.index("s0"))
    plan = plan_for(SPEC, topology, {link})
    moved, fresh = VirtualFabric(plan_for(SPEC, topology)), VirtualFabric(plan)
    moved.reroute(plan, 0)
    for core in (moved, fresh):
        for sport in range(200):
            core.inject(0, 0, PACKET, flow(sport=sport))
        core.run_until(10_000 * US)
    assert (moved.counters()["tx_packets"] == fresh.counters()["tx_packets"]).all()


def diamond() -> Topology:
    """Return a network in which switch a reaches d over b, behind which are e and f, and over c and g."""
    nodes = [(name, layer) for layer, names in enumerate(["xy", "ad", "bc", "efg"]) for name in names]
    ends = [tuple(pair) for pair in ("xa", "yd", "ab", "ac", "be", "bf", "cg", "de", "df", "dg")]
    at = {name: number for number, (name, _) in enumerate(nodes)}
    links = [Link(at[a], at[b], 4.0 if at[b] < at["e"] else 1.0) for a, b in ends]
    return topos.build(from_file.KIND, {"name": "diamond", "network": from_file.written(nodes, links, 0.0)})


def test_weights_count_the_links_that_are_left() -> None:
    topology = diamond()
    link = topology.link_between(topology.index("b"), topology.index("e"))
    a, d = topology.index("a"), sorted(nic.switch for nic in topology.nics).index(topology.index("d"))
    groups = [tables_of(each, "wcmp").group(a, d) for each in (topology, topology.without({link}))]
    assert [[hop.paths for hop in group] for group in groups] == [[2, 1], [1, 1]]


def test_packets_without_any_path_are_lost() -> None:
    for policy in ("hashed", "letflow", "scatter", "conga", "ksp:8"):
        spec = replace(SPEC, routing=policy)
        topology = spec.network()
        cut = {topology.link_between(topology.index("l1"), topology.index(f"s{i}")) for i in range(4)}
        core = VirtualFabric(plan_for(spec, topology))
        core.inject(0, 0, PACKET, flow())
        core.run_until(US)
        core.reroute(plan_for(spec, topology, cut), US)
        packet = core.inject(US, 0, PACKET, flow())
        assert packet in [each for each, *_, dropped, _ in core.run_until(1000 * US) if dropped]
        assert core.counters()["in_flight"] == 0


def test_tables_of_another_network_are_refused() -> None:
    topology = SPEC.network()
    core = VirtualFabric(plan_for(SPEC, topology))
    for other in (net(leaves=3), topos.build("ft", {"k": 4})):
        spec = replace(SPEC, topology=TopologySpec(other.kind, dict(other.params)), events=())
        with pytest.raises(ValueError, match=r"network plan|forwarding table"):
            core.reroute(plan_for(spec, other), 0)
    core.inject(0, 0, PACKET, flow())
    ((_, _, _, dropped, _),) = core.run_until(1000 * US)
    assert not dropped


def left_out(topology: Topology, *events: LinkEvent) -> list[tuple[float, set[str]]]:
    spec = replace(SPEC, events=events, reroute_ms=100.0)
    names = {
        i: "-".join(topology.nodes[end].name for end in link.ends) for i, link in enumerate(topology.links)
    }
    return [(round(t_s, 6), {names[i] for i in cut}) for t_s, cut in links_left_out(spec, topology)]


def test_routing_follows_each_link_after_the_delay() -> None:
    topology = net()
    first, second = LinkEvent(1.0, "l0", "s0"), LinkEvent(1.05, "s1", "l1")
    found = left_out(topology, second, first, LinkEvent(1.1, "l0", "s0", 1.0))
    assert found == [(1.1, {"l0-s0"}), (1.15, {"l0-s0", "l1-s1"}), (1.2, {"l1-s1"})]
    at_once = left_out(topology, first, LinkEvent(1.0, "l1", "s1"))
    assert at_once == [(1.1, {"l0-s0", "l1-s1"})]


def test_slow_links_and_links_of_hosts_stay() -> None:
    assert left_out(net(), LinkEvent(1.0, "l0", "s0", 0.5), LinkEvent(1.0, "l0h0", "l0")) == []
