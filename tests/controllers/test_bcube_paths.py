"""BCube's parallel paths: no two have a node in common but their ends (theorem 4 of its paper)."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.bcube_paths import parallel_path
from topos import Topology, build

NETWORKS: list[Topology] = [
    build("bcube", {"n": n, "k": k}) for n, k in ((4, 0), (2, 1), (5, 1), (3, 2), (2, 3))
]


def apart(n: int, src: int, dst: int, levels: int) -> list[bool]:
    return [src // n**level % n != dst // n**level % n for level in range(levels)]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(NETWORKS), st.data())
def test_one_path_per_nic_and_no_node_in_common(net: Topology, data: st.DataObject) -> None:
    some = st.sampled_from(net.hosts)
    src, dst = data.draw(st.lists(some, min_size=2, max_size=2, unique=True))
    detour = data.draw(st.integers(0, 2**32 - 1))
    n, levels = net.number("n"), net.number("k") + 1
    differ = apart(n, src, dst, levels)
    inner: list[set[int]] = []
    for level, nic in enumerate(net.nics_of(src)):
        nodes = parallel_path(net, src, dst, level, detour)
        assert nodes[0] == src and nodes[1] == nic.switch and nodes[-1] == dst
        assert all(net.link_between(a, b) >= 0 for a, b in itertools.pairwise(nodes))
        links = 2 * sum(differ) + (0 if differ[level] else 4)
        assert len(nodes) == len(set(nodes)) == links + 1
        inner.append(set(nodes[1:-1]))
    assert all(not a & b for a, b in itertools.combinations(inner, 2))


def test_a_detour_may_begin_with_any_neighbour() -> None:
    net = build("bcube", {"n": 5, "k": 1})
    src, dst = net.index("h00"), net.index("h01")
    second = {net.nodes[parallel_path(net, src, dst, 1, detour)[2]].name for detour in range(8)}
    assert second == {"h10", "h20", "h30", "h40"}
