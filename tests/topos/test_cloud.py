"""The cloud: as many paths as the rack with fewer uplinks has, one inside a rack, tenants everywhere."""

from __future__ import annotations

import itertools

import pytest

from topos import Layer, build, parse
from topos.cloud import is_ours, paths_between, rack_of, uplinks


def test_forty_hosts_are_dealt_out_over_eight_racks() -> None:
    net = build("cloud", {"n": 40})
    ours = [net.nodes[host].name for host in net.hosts if is_ours(net.nodes[host].name)]
    assert len(ours) == 40 and len(net.hosts) == 40 + 8 * 10
    assert {sum(rack_of(host) == rack for host in ours) for rack in range(8)} == {5}
    assert [node.layer for node in net.nodes if node.name.startswith("s")] == [Layer.CORE] * 8


def test_names_tell_how_many_paths_there_are() -> None:
    net = build("cloud", {"n": 16, "racks": 8, "tenants": 1})
    names = [net.nodes[host].name for host in net.hosts]
    found = set()
    for a, b in itertools.combinations(names, 2):
        paths = len(net.shortest_paths(net.index(a), net.index(b)))
        assert paths == paths_between(a, b)
        found.add(paths)
    assert found == {1, 2, 4, 6, 8}


@pytest.mark.parametrize("racks", [1, 3, 4])
def test_every_uplink_leads_to_a_spine_of_its_own(racks: int) -> None:
    net = build("cloud", {"n": 5, "racks": racks, "tenants": 0})
    spines = {i for i, node in enumerate(net.nodes) if node.layer is Layer.CORE}
    for rack in range(racks):
        assert len(spines & set(net.adjacency[net.index(f"r{rack}")])) == uplinks(rack)
    assert len(net.hosts) == 5


def test_other_topologies_names_tell_nothing() -> None:
    assert paths_between("p0e0h0", "p1e0h0") is None
    assert not is_ours("p0e0h0") and rack_of("s3") is None
    assert parse("cloud,40,tenants=3") == ("cloud", {"n": 40, "tenants": 3})
