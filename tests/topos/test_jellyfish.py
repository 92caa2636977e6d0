"""Jellyfish: every switch has its ports, graphs differ by seed, and a run's seed is the graph's."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from common.errors import UsageError
from model.spec import LinkSpec, RunSpec, TopologySpec
from topos import Kind, Topology, build


def degrees(topology: Topology) -> list[int]:
    """Return the number of links of each switch to others."""
    return [
        sum(topology.nodes[near].kind is Kind.SWITCH for near in topology.adjacency[switch])
        for switch in topology.switches
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("switches", "ports", "servers", "more"), [(4, 4, 1, 0), (20, 6, 2, 0), (80, 8, 1, 48), (15, 5, 2, 0)]
)
def test_all_ports_are_used(switches: int, ports: int, servers: int, more: int, seed: int) -> None:
    topology = build("jf", dict(switches=switches, ports=ports, servers=servers, more=more, seed=seed))
    below = Counter(nic.switch for nic in topology.nics)
    pairs = zip(topology.switches, degrees(topology), strict=True)
    used = [degree + below[switch] for switch, degree in pairs]
    odd = (switches * (ports - servers) - more) % 2
    assert sum(used) == switches * ports - odd and max(used) == ports
    assert sorted(below.values()) == [servers] * (switches - more) + [servers + 1] * more


def test_the_published_network_has_as_many_servers_and_links() -> None:
    """Singla et al., NSDI 2012, Table 1: 780 servers on the 245 switches of 14 ports of a FatTree for 686."""
    topology = build("jf", {"switches": 245, "ports": 14, "servers": 3, "more": 45})
    assert len(topology.hosts) == 780 and len(topology.links) - 780 == 1325


def test_a_seed_is_a_graph_and_a_run_draws_its_own() -> None:
    def links(of_run: int, **params: int) -> object:
        network = TopologySpec("jellyfish", {"switches": 12, "ports": 5, **params})
        return RunSpec(LinkSpec(10.0), network, seed=of_run).network().links

    assert links(1) == links(1) != links(2)
    assert links(1, seed=7) == links(2, seed=7) != links(1)
    spec = RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4}))
    assert spec.network() is dataclasses.replace(spec, seed=2).network()


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"switches": 4, "ports": 8}, "each needs 1 to 3"),
        ({"switches": 8, "ports": 3, "servers": 3}, "each needs 1 to 7"),
        ({"switches": 8, "ports": 3, "servers": 0}, "give no graph"),
        ({"switches": 8, "more": 9}, "give no graph"),
        ({"switches": 40, "ports": 2, "servers": 1}, "not connected"),
    ],
)
def test_numbers_that_give_no_network_are_refused(params: dict[str, int], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        build("jf", params)
