"""Dumbbell and two bottlenecks: which hosts share which links, and replicas that share nothing."""

from __future__ import annotations

import itertools

import pytest

from topos import Kind, Topology, build


def _names(topology: Topology, path: tuple[int, ...]) -> list[str]:
    return [topology.nodes[node].name for node in path]


@pytest.mark.parametrize(("n", "lanes"), [(1, 1), (2, 6), (9, 3), (252, 1), (2, 254)])
def test_every_pair_of_a_lane_crosses_its_one_bottleneck(n: int, lanes: int) -> None:
    topology = build("dumbbell", {"n": n, "lanes": lanes})
    assert (len(topology.hosts), len(topology.switches)) == (2 * n * lanes, 2 * lanes)
    assert len(topology.links) == 2 * n * lanes + lanes
    for lane, pair in itertools.product({0, lanes - 1}, {0, n - 1}):
        ends = [topology.index(f"{side}{lane}h{pair}") for side in "lr"]
        (path,) = topology.shortest_paths(*ends)
        assert _names(topology, path) == [f"l{lane}h{pair}", f"l{lane}", f"r{lane}", f"r{lane}h{pair}"]


def test_replicas_are_islands() -> None:
    topology = build("dumbbell", {"n": 2, "lanes": 3})
    island = {node.name: topology.islands[i] for i, node in enumerate(topology.nodes)}
    assert len(set(island.values())) == 3
    assert {name for name, of in island.items() if of == island["l1h0"]} == {
        "l1h0", "l1h1", "r1h0", "r1h1", "l1", "r1",
    }  # fmt: skip
    assert len(set(build("two_bottlenecks", {"first": 1, "lanes": 4}).islands)) == 4
    assert set(build("fat_tree", {"k": 4}).islands) == {0}


@pytest.mark.parametrize(("first", "second", "lanes"), [(3, 1, 2), (0, 0, 1), (251, 251, 1), (1, 0, 127)])
def test_the_dual_homed_pair_has_a_path_through_each_bottleneck(first: int, second: int, lanes: int) -> None:
    topology = build("two_bottlenecks", {"first": first, "second": second, "lanes": lanes})
    assert len(topology.hosts) == 2 * lanes * (1 + first + second)
    ends = [topology.nics_of(topology.hosts[i])[0].switch for i in (0, len(topology.hosts) // lanes - 1)]
    assert topology.shortest_paths(*ends), "the baseline flow has a path"
    for lane in {0, lanes - 1}:
        left, right = (topology.nics_of(topology.index(f"{side}{lane}h0")) for side in "lr")
        for bottleneck, here, there in zip("ab", left, right, strict=True):
            switches = [topology.nodes[nic.switch].name for nic in (here, there)]
            assert switches == [f"l{lane}{bottleneck}", f"r{lane}{bottleneck}"]
            assert len(topology.shortest_paths(here.switch, there.switch)) == 1
        assert topology.shortest_paths(left[0].switch, right[1].switch) == ()
        for bottleneck, count in (("a", first), ("b", second)):
            below = topology.adjacency[topology.index(f"l{lane}{bottleneck}")]
            hosts = [node for node in below if topology.nodes[node].kind is Kind.HOST]
            assert len(hosts) == 1 + count
