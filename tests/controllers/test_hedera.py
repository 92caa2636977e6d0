"""Hedera's schedulers on made-up networks: which flows move where, and which stay."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

import topos
from common.errors import UsageError
from controllers import schedulers
from controllers.hashing import FiveTuple
from controllers.hedera import Candidates, FlowDemand, Search, natural_demands
from controllers.rules import Routes
from controllers.scheduler import FlowCount, PortCount
from topos.topology import Topology


def fat_tree(k: int) -> Topology:
    return topos.build("fat_tree", {"k": k})


FT4, FT8 = fat_tree(4), fat_tree(8)
STRIDE = [(host, (host + 4) % 16) for host in range(16)]


def test_candidates_are_the_shortest_paths_between_edge_switches() -> None:
    network = MadeUpNetwork(FT4, [(0, 15), (0, 2), (0, 1)])
    candidates = Candidates(FT4)
    far, near, same = (candidates.of(flow) for flow in network.flows())
    paths = FT4.shortest_paths(FT4.hosts[0], FT4.hosts[15])
    assert far.names == tuple(tuple(FT4.nodes[n].name for n in path[1:-1]) for path in paths)
    assert (len(far), len(near), len(same)) == (4, 2, 1)
    assert far.links.shape == (4, 4) and same.links.shape == (1, 0)
    assert candidates.most == 4


@pytest.mark.parametrize("name", list(schedulers.SCHEDULERS))
def test_an_ideal_scheduler_takes_flows_of_a_stride_apart(name: str) -> None:
    """Under stride(4) each flow can have links of its own (Hedera, section 5)."""
    network = MadeUpNetwork(FT4, STRIDE)
    assert network.most_on_a_link() > 1
    schedulers.make(name, FT4, 100.0, 1, ideal=True).tick(network, 0.0)
    assert network.most_on_a_link() == 1


def test_first_fit_leaves_alone_what_fits_and_takes_freed_links() -> None:
    network = MadeUpNetwork(FT4, STRIDE)
    first_fit = schedulers.make("first_fit", FT4, 100.0, 1, ideal=True)
    first_fit.tick(network, 0.0)
    moves = network.moves
    first_fit.tick(network, 1.0)
    assert network.moves == moves
    gone = next(iter(network.octets))
    path = network.path(gone)
    network.end(gone)
    again = network.begin(0, 4, sport=9)
    first_fit.tick(network, 2.0)
    assert network.path(again) == path and network.most_on_a_link() == 1


def test_a_flow_that_fits_nowhere_stays_where_it_is() -> None:
    """An edge switch has two uplinks at k=4, so only two of the four flows of its hosts fit. On an
    oversubscribed tree the others stay on their paths."""
    topology = topos.build("fat_tree", {"k": 4, "oversubscription": 2})
    pairs = [(0, 31), (1, 30), (2, 29), (3, 28)]
    network = MadeUpNetwork(topology, pairs)
    usual = {flow: network.path(flow) for flow in network.octets}
    schedulers.make("first_fit", topology, 100.0, 1, ideal=True).tick(network, 0.0)
    moved = [flow for flow in network.octets if network.path(flow) != usual[flow]]
    assert moved == list(network.octets)[:2], "the first two take the uplinks"
    assert len({network.path(flow)[1:3] for flow in moved}) == network.moves == 2


def test_small_flows_are_not_scheduled_and_a_flow_once_large_stays_so() -> None:
    """10 % of 100 Mb/s for 0.1 s are 125 kB."""
    network = MadeUpNetwork(FT4, STRIDE)
    first_fit = schedulers.make("first_fit", FT4, 100.0, 1)
    for flow in network.octets:
        network.octets[flow] = 120_000
    first_fit.tick(network, 0.1)
    assert network.moves == 0
    for flow in network.octets:
        network.octets[flow] += 130_000
    first_fit.tick(network, 0.2)
    assert network.most_on_a_link() == 1
    moves = network.moves
    first_fit.tick(network, 0.3)  # no flow has sent anything
    assert network.moves == moves and network.most_on_a_link() == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", list(schedulers.SCHEDULERS))
def test_a_permutation_of_128_hosts_fits_far_better_than_hashed(name: str, seed: int) -> None:
    network = MadeUpNetwork(FT8, permutation(128, seed))
    hashed = crowding(network)
    schedulers.make(name, FT8, 100.0, seed, ideal=True).tick(network, 0.0)
    assert crowding(network) < 0.5 * hashed


def crowding(network: MadeUpNetwork) -> float:
    """Return the sum, over used links between switches, of their flows less one."""
    candidates = Candidates(network.topology)
    counts = [0] * len(candidates.capacity)
    for flow in network.flows():
        choices = candidates.of(flow)
        for link in choices.links[choices.names.index(flow.path[1:-1])]:
            counts[int(link)] += 1
    return sum(max(0, count - 1) for count in counts)


def test_annealing_keeps_count_of_energy_and_never_ends_above_where_it_began() -> None:
    """Loads that were changed step by step are those of some state: each flow still loads three links."""
    rng = random.Random(7)
    loads = {
        receiver: [
            FlowDemand(rng.random(), [rng.sample(range(12), 3) for _ in range(4)])
            for _ in range(rng.randrange(1, 4))
        ]
        for receiver in range(10)
    }
    below = {receiver: receiver // 3 for receiver in loads}
    search = Search(loads, below, [3.5] * 12, 4, rng)
    began = dict.fromkeys(loads, 0)
    before = search.energy(began)
    best = search.best(began)
    kept = list(search._loads)  # of the state it ended in, which need not be the best
    assert search.energy(best) < before
    assert sum(kept) == pytest.approx(sum(search._loads))
    assert set(best) == set(began) and all(0 <= number < 4 for number in best.values())


def test_the_same_seed_anneals_alike_and_another_otherwise() -> None:
    def paths(seed: int) -> list[tuple[str, ...]]:
        network = MadeUpNetwork(FT8, permutation(128, 1))
        schedulers.make("annealing", FT8, 100.0, seed, ideal=True).tick(network, 0.0)
        return [flow.path for flow in network.flows()]

    assert paths(1) == paths(1) != paths(2)


def test_all_flows_to_a_receiver_pass_one_core_switch() -> None:
    network = MadeUpNetwork(FT4, [(0, 15), (4, 15), (8, 15), (1, 14)])
    schedulers.make("annealing", FT4, 100.0, 1, ideal=True).tick(network, 0.0)
    cores = {path[3] for path in (flow.path for flow in network.flows()) if path[-1] == "p3e1h1"}
    assert len(cores) == 1


def test_networks_whose_hosts_forward_are_refused() -> None:
    with pytest.raises(UsageError, match="its hosts forward"):
        schedulers.make("first_fit", topos.build("bcube", {"n": 4}), 100.0, 1)


def test_vl2_and_two_speeds_of_links() -> None:
    """Any network with a path set will do."""
    topology = topos.build("vl2", {"da": 4, "di": 6})
    hosts = len(topology.hosts)
    network = MadeUpNetwork(topology, permutation(hosts, 1))
    for name in schedulers.SCHEDULERS:
        schedulers.make(name, topology, 100.0, 1, ideal=True).tick(network, 0.0)
    assert len(network.flows()) == hosts


def demands(
    pairs: Sequence[tuple[int, int]],
    hosts: int,
    sending: Sequence[float] | None = None,
    receiving: Sequence[float] | None = None,
) -> list[float]:
    sources, receivers = (np.array([pair[end] for pair in pairs], np.int64) for end in (0, 1))
    usual = [1.0] * hosts
    found: list[float] = natural_demands(
        sources, receivers, np.array(sending or usual), np.array(receiving or usual)
    ).tolist()
    return found


def test_four_hosts_as_hedera_works_them_out() -> None:
    """The structure of the paper's figure 4. Senders divide their links: h0 and h1 give a third to each of
    three flows, h2 and h3 a half to each of two. h0 is offered 7/6 by three flows and limits each to a third,
    so h2 can give a sixth more to h3. h1 is offered 4/3 by three flows and limits each to a third, including
    both of h3. h3 is then offered 1."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 0), (1, 2), (2, 0), (2, 3), (3, 1), (3, 1)]
    third = 1 / 3
    expected = [third, third, third, third, third, third, third, 2 / 3, third, third]
    assert demands(pairs, 4) == pytest.approx(expected, abs=1e-9)


def test_links_of_different_rates() -> None:
    """Host 0 has rate 10, its receivers 1 and 10: the second gets what the first cannot take."""
    assert demands([(0, 1), (0, 2)], 3, [10, 1, 1], [1, 1, 10]) == pytest.approx([1, 9])


@pytest.mark.parametrize("seed", range(40))
def test_any_flows_fit_their_hosts_and_each_meets_a_full_end(seed: int) -> None:
    """No host sends or receives more than its link carries, and the demands are max-min fair, which has one
    solution: a flow can get more only if another flow that has no more than it gets less."""
    rng = random.Random(seed)
    hosts = rng.randrange(2, 12)
    flows = [tuple(rng.sample(range(hosts), 2)) for _ in range(rng.randrange(1, 60))]
    pairs = [(src, dst) for src, dst in flows]
    found = demands(pairs, hosts)
    for end in (0, 1):
        used = [sum(d for d, pair in zip(found, pairs, strict=True) if pair[end] == h) for h in range(hosts)]
        assert max(used) <= 1 + 1e-6
    for demand, pair in zip(found, pairs, strict=True):
        assert demand > 0
        shared = (
            [d for d, other in zip(found, pairs, strict=True) if other[end] == pair[end]] for end in (0, 1)
        )
        assert any(sum(beside) >= 1 - 1e-6 and demand >= max(beside) - 1e-6 for beside in shared)


def test_no_flows_have_no_demands() -> None:
    assert demands([], 3) == []


class MadeUpNetwork:
    """Flows between hosts (by position), each on its hashed path until another is set. `octets` counts the
    bytes that each has sent."""

    def __init__(self, topology: Topology, pairs: Sequence[tuple[int, int]], seed: int = 1) -> None:
        self.topology = topology
        self.routes = Routes(topology, "hashed", seed)
        self.moves = 0
        self.octets: dict[FiveTuple, int] = {}
        self._paths: dict[FiveTuple, tuple[str, ...]] = {}
        for number, pair in enumerate(pairs):
            self.begin(*pair, sport=1000 + number)

    def begin(self, src: int, dst: int, sport: int) -> FiveTuple:
        ips = [self.topology.nics_of(self.topology.hosts[end])[0].ip for end in (src, dst)]
        flow = FiveTuple(ips[0], ips[1], 6, sport, 5001)
        self.octets[flow] = 0
        self._paths[flow] = tuple(self.topology.nodes[node].name for node in self.routes.path(flow))
        return flow

    def end(self, flow: FiveTuple) -> None:
        del self.octets[flow], self._paths[flow]

    def flows(self) -> Sequence[FlowCount]:
        return [FlowCount(flow, octets, self._paths[flow]) for flow, octets in self.octets.items()]

    def ports(self) -> Sequence[PortCount]:
        return []

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self.routes.check(flow, [self.topology.index(name) for name in path])
        self._paths[flow] = tuple(path)
        self.moves += 1

    def clear_path(self, flow: FiveTuple) -> None:
        raise AssertionError(f"{flow}: no scheduler here clears paths")

    def path(self, flow: FiveTuple) -> tuple[str, ...]:
        return self._paths[flow]

    def most_on_a_link(self) -> int:
        """Return the largest number of flows on one link between switches."""
        hosts = {self.topology.nodes[host].name for host in self.topology.hosts}
        hops = (hop for path in self._paths.values() for hop in pairwise(path))
        return max(Counter(hop for hop in hops if not hosts.intersection(hop)).values(), default=0)


def permutation(hosts: int, seed: int) -> list[tuple[int, int]]:
    """Return random pairs in which every host sends to one other host and receives from one."""
    order = list(range(hosts))
    random.Random(seed).shuffle(order)
    return list(zip(order, [*order[1:], order[0]], strict=True))
