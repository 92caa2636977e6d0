"""The laws of policies whose switches choose next hops by their own state, each in a small leaf-spine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.routing import IN_SWITCHES, check_routing
from fabric._core import VirtualFabric
from fabric.readings import Departure
from model.links import downlink, uplink
from model.network_plan import network_plan
from model.spec import LinkSpec
from tests.support.core_networks import TCP, ip
from topos import build
from topos.topology import Topology

FiveTuple = tuple[int, int, int, int, int]

US = 1_000_000
PACKET = 1250
"""Bytes: 1 us at 10 Gb/s."""
LINK = LinkSpec(10_000, delay_us=1, queue_pkts=1000, nic_queue_pkts=1000)


def net(spines: int = 4, leaves: int = 2, hosts: int = 4) -> Topology:
    return build("leaf_spine", {"leaves": leaves, "spines": spines, "hosts": hosts, "speed": 1})


def fabric(topology: Topology, policy: str, seed: int = 1) -> VirtualFabric:
    return VirtualFabric(network_plan(topology, ecmp_groups(topology), LINK, policy, seed))


def up(topology: Topology, leaf: int, spine: int) -> int:
    """Return the port from a leaf to a spine."""
    return uplink(topology.link_between(topology.index(f"l{leaf}"), topology.index(f"s{spine}")))


def down(topology: Topology, leaf: int, spine: int) -> int:
    return downlink(topology.link_between(topology.index(f"l{leaf}"), topology.index(f"s{spine}")))


def flow(src: int = 0, dst: int = 0, sport: int = 1000, leaves: tuple[int, int] = (0, 1)) -> FiveTuple:
    there, back = leaves
    return (ip(f"10.{there}.0.{src + 2}"), ip(f"10.{back}.0.{dst + 2}"), TCP, sport, 80)


def sent(core: VirtualFabric, topology: Topology, leaf: int = 0) -> list[int]:
    """Return the packets that a leaf has sent to each spine."""
    spines = topology.number("spines")
    return [int(core.counters()["tx_packets"][up(topology, leaf, spine)]) for spine in range(spines)]


def spines_of(core: VirtualFabric, topology: Topology, times_us: range, sport: int = 1000) -> list[int]:
    """Return the spine of each packet of one flow, sent at these times."""
    found, before = [], np.array(sent(core, topology))
    for at_us in times_us:
        core.inject(at_us * US, 0, PACKET, flow(sport=sport))
        core.run_until((at_us + times_us.step) * US - 1)
        after = np.array(sent(core, topology))
        found.append(int(np.flatnonzero(after - before)[0]))
        before = after
    return found


# ---- LetFlow.


def test_a_flowlet_keeps_its_path_up_to_the_gap() -> None:
    topology = net()
    for sport in range(1000, 1010):
        core = fabric(topology, "letflow:500")
        assert len(set(spines_of(core, topology, range(0, 50_000, 500), sport))) == 1


def test_after_the_gap_the_next_hop_is_random() -> None:
    topology = net()
    taken = spines_of(fabric(topology, "letflow:500"), topology, range(0, 400 * 501, 501))
    counts = np.bincount(taken, minlength=4)
    # Binomial(400, 1/4): a standard deviation of 8.7
    assert abs(counts - 100).max() < 35
    stays = sum(a == b for a, b in pairwise(taken))
    assert 60 < stays < 140  # a quarter, too


def test_flows_take_their_flowlets_apart() -> None:
    topology = net()
    core = fabric(topology, "letflow:500")
    for sport in range(1000, 1064):
        core.inject(0, 0, PACKET, flow(sport=sport))
    core.run_until(1000 * US)
    assert min(sent(core, topology)) >= 6


def test_the_same_seed_makes_the_same_choices_and_another_makes_others() -> None:
    topology = net()
    chosen = [
        spines_of(fabric(topology, "letflow:100", seed), topology, range(0, 20_000, 200))
        for seed in (1, 1, 2)
    ]
    assert chosen[0] == chosen[1] != chosen[2]


def test_a_flowlet_leaves_a_link_that_is_cut() -> None:
    topology = net()
    core = fabric(topology, "letflow:500")
    (first,) = set(spines_of(core, topology, range(0, 1000, 100)))
    core.set_port_up(up(topology, 0, first), False, 1000 * US)
    core.run_until(2000 * US)
    assert first not in spines_of(core, topology, range(3000, 5000, 100))


def test_hosts_of_one_leaf_need_no_spine() -> None:
    topology = net()
    for policy in sorted(IN_SWITCHES):
        core = fabric(topology, policy)
        core.inject(0, 0, PACKET, flow(0, 1, leaves=(0, 0)))
        ((_, nic, _, dropped, _),) = core.run_until(1000 * US)
        assert (nic, dropped, sum(sent(core, topology))) == (1, False, 0)


@pytest.mark.parametrize("policy", sorted(IN_SWITCHES - {"conga"}))
def test_every_packet_arrives_at_its_host_in_three_tiers(policy: str) -> None:
    topology = build("ft", {"k": 4})
    core = fabric(topology, policy)
    hosts = [int(np.uint32(ip(nic.ip))) for nic in topology.nics]
    wanted = {}
    for number, (a, b) in enumerate((a, b) for a in range(16) for b in range(16) if a != b):
        wanted[core.inject(0, a, PACKET, (hosts[a], hosts[b], TCP, number + 1, 80))] = b
    arrived: list[Departure] = core.run_until(10_000 * US)
    assert {packet: nic for packet, nic, _, dropped, _ in arrived if not dropped} == wanted


@pytest.mark.parametrize("policy", sorted(IN_SWITCHES))
def test_hosts_that_forward_keep_no_state(policy: str) -> None:
    with pytest.raises(UsageError, match="another --routing"):
        check_routing(policy, build("bcube", {"n": 4, "k": 1}))


# ---- DRILL.


def burst(core: VirtualFabric, packets: int, hosts: int = 4) -> None:
    """Let every host of the first leaf send so many packets at once: they reach the leaf side by side."""
    for _ in range(packets):
        for host in range(hosts):
            core.inject(0, host, PACKET, flow(host, host))


def test_drill_passes_by_the_longer_queue() -> None:
    topology = net(spines=2)
    core = fabric(topology, "drill:2:1")
    core.set_port_rate(up(topology, 0, 0), 1000, 0)  # its first packet takes 10 s
    for at in range(100):
        core.inject(10 * at * US, 0, PACKET, flow())
    core.run_until(2000 * US)
    assert sent(core, topology) == [0, 99]
    assert core.counters()["queued_pkts"][up(topology, 0, 0)] == 1


def test_drill_that_sees_every_queue_lets_no_packet_wait() -> None:
    topology = net()
    core = fabric(topology, "drill:4:0")
    burst(core, 100)
    core.run_until(1000 * US)
    assert sent(core, topology) == [100] * 4
    assert [core.counters()["max_queue_pkts"][up(topology, 0, spine)] for spine in range(4)] == [1] * 4


def test_drill_shares_by_rate_where_queues_stand() -> None:
    topology = net(spines=2)
    core = fabric(topology, "drill:2:1")
    core.set_port_rate(up(topology, 0, 0), 5_000_000_000, 0)
    burst(core, 150)
    core.run_until(10_000 * US)
    slow, fast = sent(core, topology)
    # While the hosts send, 150 us, 75 and 150 packets leave; the queues, equal then, keep 188 each
    assert slow + fast == 600
    assert abs(slow - (75 + 188)) <= 3


def test_a_remembered_queue_is_worth_a_sample() -> None:
    topology = net(spines=8, hosts=8)
    longest = {}
    for policy in ("drill:1:0", "drill:1:1", "drill:2:1"):
        core = fabric(topology, policy)
        burst(core, 200, hosts=8)
        core.run_until(10_000 * US)
        longest[policy] = max(core.counters()["max_queue_pkts"][up(topology, 0, spine)] for spine in range(8))
    assert longest["drill:1:0"] > 2 * longest["drill:1:1"] >= 2 * longest["drill:2:1"]


# ---- CONGA.


def test_conga_moves_a_flow_only_to_a_better_uplink() -> None:
    topology = net()
    taken = spines_of(fabric(topology, "conga:500:160"), topology, range(0, 400 * 501, 501))
    assert len(set(taken)) == 1


def test_conga_starts_flowlets_on_idle_uplinks() -> None:
    topology = net(spines=2)
    core = fabric(topology, "conga:20:160")
    for at in range(0, 2000, 2):
        core.inject(at * US, 0, PACKET, flow())  # one flowlet, half of its uplink's rate
        if at >= 400 and not at % 100:
            core.inject(at * US, 1, PACKET, flow(1, 1, sport=2000 + at))
    core.run_until(3000 * US)
    assert sorted(sent(core, topology)) == [16, 1000]


def test_conga_learns_of_congestion_beyond_the_spine() -> None:
    topology = net(spines=2, leaves=3)
    core = fabric(topology, "conga:20:160")
    elsewhere = flow(0, 0, leaves=(2, 1))
    hosts = topology.number("hosts")
    found, before = [], [0, 0]
    for at in range(0, 8000, 2):  # leaf 2 fills half of one spine's link to leaf 1
        core.inject(at * US, 2 * hosts, PACKET, elsewhere)
        if at % 100 == 0:
            core.inject(at * US, 1, 100, flow(1, 1))
            core.inject(at * US, hosts + 1, 100, flow(1, 1, leaves=(1, 0)))  # carries the feedback
        if at % 100 == 50:
            now = sent(core, topology)
            found.append([a - b for a, b in zip(now, before, strict=True)].index(1))
            before = now
    busy = int(np.argmax(sent(core, topology, leaf=2)))
    assert set(found[4:]) == {1 - busy}


@pytest.mark.parametrize(
    ("policy", "least", "most"), [("letflow:20", 0.45, 0.55), ("conga:20:160", 0.25, 0.4)]
)
def test_conga_spares_a_slow_link_that_is_not_its_own(policy: str, least: float, most: float) -> None:
    topology = net(spines=2)
    core = fabric(topology, policy)
    core.set_port_rate(down(topology, 1, 0), 5_000_000_000, 0)
    for at in range(60_000):  # 12 Gb/s in flowlets of 40 packets, and an answer to one packet in ten
        when, host = at * 5 * US // 6, at % 4
        sport = 1000 + at // 160 % 16
        core.inject(when, host, PACKET, flow(host, host, sport))
        if at % 10 < 4:
            core.inject(when, 4 + host, 100, flow(host, host, sport, leaves=(1, 0)))
    core.run_until(100_000 * US)
    over_slow, over_fast = sent(core, topology)
    assert least < over_slow / (over_slow + over_fast) < most


@pytest.mark.parametrize(
    "kind", [("ft", {"k": 4}), ("dumbbell", {"n": 2, "lanes": 1})], ids=["three tiers", "leaves side by side"]
)
def test_conga_outside_two_tiers_is_refused(kind: tuple[str, dict[str, int]]) -> None:
    with pytest.raises(UsageError, match=r"every leaf linked to every spine.*--topology ls,4"):
        check_routing("conga", build(*kind))


# ---- Presto.


def test_presto_sends_cells_of_64_kb_over_the_spines_in_turn() -> None:
    topology = net()
    core = fabric(topology, "presto")
    taken = []
    for cell in range(20):  # 52 packets of 1250 bytes are the most in 65 536
        before = np.array(sent(core, topology))
        for packet in range(52):
            core.inject((60 * cell + packet) * US, 0, PACKET, flow())
        core.run_until((60 * cell + 59) * US)
        (spine,) = np.flatnonzero(np.array(sent(core, topology)) - before)
        taken.append(int(spine))
    assert len(set(taken[:4])) == 4
    assert taken == taken[:4] * 5


def test_presto_fills_spines_equally() -> None:
    topology = net()
    core = fabric(topology, "presto")
    for at in range(4 * 12 * 52):
        core.inject(at * US, at % 4, PACKET, flow(at % 4, at % 4))
    core.run_until(10_000 * US)
    assert sent(core, topology) == [12 * 52] * 4


def overtaken(policy: str) -> int:
    """Return how many packets of a flow arrive after a later one, where one uplink is five times slower."""
    topology = net()
    core = fabric(topology, policy)
    core.set_port_rate(up(topology, 0, 2), 2_000_000_000, 0)
    ids = [core.inject(0, 0, PACKET, flow()) for _ in range(300)]
    order = [ids.index(packet) for packet, *_ in core.run_until(100_000 * US)]
    return sum(later < earlier for earlier, later in pairwise(order))


@pytest.mark.parametrize("policy", ["ecmp", "hashed", "letflow:500", "conga:500:160"])
def test_no_packet_overtakes_within_a_flow_or_flowlet(policy: str) -> None:
    assert overtaken(policy) == 0


@pytest.mark.parametrize("policy", ["scatter", "presto:64"])
def test_packets_overtake_one_another_on_different_paths(policy: str) -> None:
    assert overtaken(policy) > 0
