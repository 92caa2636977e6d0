"""Networks as drawings: every node and every port has a place, pods do not overlap."""

from __future__ import annotations

import numpy as np
import pytest

import topos
from analysis.watch.drawing import MAX_NODES, Drawing, draw, pods_of
from topos.topology import Layer, Topology

SMALL = ["ft,4", "ft,8", "dhft,4", "ls,4", "star,6", "db,3", "vl2,4", "bcube,4", "two,4"]


def network(text: str) -> Topology:
    return topos.build(*topos.parse(text))


def drawn(text: str) -> tuple[Topology, Drawing]:
    topology = network(text)
    return topology, draw(topology)


@pytest.mark.parametrize("text", SMALL)
def test_every_node_has_a_place_of_its_own(text: str) -> None:
    topology, drawing = drawn(text)
    assert drawing.whole
    places = {(round(spot.x, 6), round(spot.y, 6)) for spot in drawing.spots}
    assert len(places) == len(topology.nodes)
    assert all(0 <= spot.x <= 1 and 0 <= spot.y <= 1 for spot in drawing.spots)
    assert np.array_equal(drawing.half_of, np.arange(2 * len(topology.links)))


@pytest.mark.parametrize("text", ["ft,4", "ft,8"])
def test_layers_are_above_each_other(text: str) -> None:
    _, drawing = drawn(text)
    heights = {layer: [spot.y for spot in drawing.spots if spot.layer is layer] for layer in Layer}
    assert max(heights[Layer.CORE]) < min(heights[Layer.AGG])
    assert max(heights[Layer.AGG]) < min(heights[Layer.EDGE])
    assert max(heights[Layer.EDGE]) < min(heights[Layer.HOST])


def test_pods_of_a_fat_tree_stand_side_by_side() -> None:
    topology, drawing = drawn("ft,8")
    assert [pod.name for pod in drawing.pods] == [f"pod {i}" for i in range(8)]
    assert all(left.right < right.left for left, right in zip(drawing.pods, drawing.pods[1:], strict=False))
    for node, pod in enumerate(pods_of(topology)):
        if pod >= 0:
            assert topology.nodes[node].name.startswith(f"p{pod}")
            assert drawing.pods[pod].left <= drawing.spots[node].x <= drawing.pods[pod].right


def test_hosts_stand_below_their_switches() -> None:
    topology, drawing = drawn("ft,8")
    order = sorted(topology.hosts, key=lambda host: drawing.spots[host].x)
    assert [topology.nics_of(host)[0].switch for host in order] == sorted(
        topology.nics_of(host)[0].switch for host in topology.hosts
    )


def test_a_large_network_is_drawn_by_pod() -> None:
    topology, drawing = drawn("ft,16")
    assert len(topology.nodes) > MAX_NODES and not drawing.whole
    assert len(drawing.spots) == 3 * 16 + 1 and len(drawing.lines) == 3 * 16
    assert sum(spot.nodes for spot in drawing.spots) == len(topology.nodes)
    assert len(drawing.half_of) == 2 * len(topology.links)
    for link, cable in enumerate(topology.links):
        up, down = drawing.half_of[2 * link : 2 * link + 2]
        assert up // 2 == down // 2 and up != down
        low, high = drawing.lines[up // 2]
        ends = (drawing.spot_of[cable.a], drawing.spot_of[cable.b])
        assert ends == ((low, high) if up % 2 == 0 else (high, low))


def test_many_pods_share_places() -> None:
    _, drawing = drawn("ls,200")
    assert len(drawing.pods) <= 64 and drawing.pods[0].name == "pods 0 to 3"
