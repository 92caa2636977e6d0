"""Expected throughput of another subflow: the two rules by hand, and properties."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from controllers.hashing import FiveTuple
from controllers.responsive.controller import SubflowRoutes

F = FiveTuple("10.0.0.2", "10.1.0.2", 6, 1000, 5001)
G, H = (dataclasses.replace(F, sport=port) for port in (1001, 1002))
UP_A, UP_B, A_CORE_0, A_CORE_1, B_CORE_2, B_CORE_3 = range(6)
"""Links of an edge switch below two aggregation switches with two cores each."""
PATHS = ([UP_A, A_CORE_0], [UP_A, A_CORE_1], [UP_B, B_CORE_2], [UP_B, B_CORE_3])


def expected(routes: SubflowRoutes, flow: FiveTuple) -> list[float]:
    return [routes.expected_mbps(flow, row, 1000.0) for row in PATHS]


def test_rule_1_by_hand() -> None:
    """Without a subflow of its own: B over the largest number of aggregates, the flow included."""
    routes = SubflowRoutes([1000.0] * 6)
    assert expected(routes, F) == [1000.0] * 4
    routes.add(G, PATHS[0])
    routes.add(H, PATHS[0])
    routes.add(H, PATHS[2])
    assert [round(each, 2) for each in expected(routes, F)] == [333.33, 333.33, 500.0, 500.0]


def test_subflows_of_a_connection_are_one_aggregate() -> None:
    routes = SubflowRoutes([1000.0] * 6)
    routes.add(G, PATHS[0])
    routes.add(G, PATHS[1])
    assert routes.aggregates(UP_A) == 1
    assert expected(routes, F)[:2] == [500.0, 500.0]


def test_rule_2_by_hand() -> None:
    """F is on core 0 with two others, so it expects 333 there. Of its half of the uplink, 167 are left for a
    subflow on core 1, although that core is free. With the other uplink it would get all of it."""
    routes = SubflowRoutes([1000.0] * 6)
    routes.add(F, PATHS[0])
    routes.add(G, PATHS[0])
    routes.add(H, [A_CORE_0])
    assert [round(each, 2) for each in expected(routes, F)] == [0.0, 166.67, 1000.0, 1000.0]


def test_nothing_is_left_where_the_shared_link_is_the_bottleneck() -> None:
    routes = SubflowRoutes([1000.0] * 6)
    routes.add(F, PATHS[0])
    assert expected(routes, F) == [0.0, 0.0, 1000.0, 1000.0]


def test_path_without_links_has_the_rate_of_the_host() -> None:
    assert SubflowRoutes([]).expected_mbps(F, [], 40.0) == 40.0


ROWS = st.sampled_from(PATHS)
FLOWS = st.sampled_from([F, G, H])


@given(st.lists(st.tuples(FLOWS, ROWS), max_size=12), FLOWS, ROWS)
def test_expected_throughput_is_bounded(
    present: list[tuple[FiveTuple, list[int]]], flow: FiveTuple, row: list[int]
) -> None:
    """Never below 0, never above an equal share of any link of the path, and 0 on a path it has."""
    routes = SubflowRoutes([1000.0, 1000.0, 500.0, 1000.0, 250.0, 1000.0])
    for each, path in present:
        routes.add(each, path)
    found = routes.expected_mbps(flow, row, 1000.0)
    assert 0 <= found <= 1000.0
    on = {(each, link) for each, path in present for link in path} | {(flow, link) for link in row}
    share = min(1000.0 / sum(1 for _, link in on if link == one) for one in row)
    assert found <= share + 1e-9
    if (flow, row) in present:
        assert found < 1e-9


@given(st.lists(st.tuples(FLOWS, ROWS), max_size=12))
def test_removing_everything_leaves_nothing(present: list[tuple[FiveTuple, list[int]]]) -> None:
    routes = SubflowRoutes([1000.0] * 6)
    for each, path in present:
        routes.add(each, path)
    for each, path in present:
        routes.remove(each, path)
    assert [routes.aggregates(link) for link in range(6)] == [0] * 6
    assert expected(routes, F) == [1000.0] * 4
