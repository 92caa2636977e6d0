"""Responsive MPTCP: demands from the monitor, routes of subflows, and what the controller decides."""

from __future__ import annotations

import copy
import dataclasses
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topos
from common.errors import UsageError
from controllers.hashing import FiveTuple
from controllers.responsive.controller import (
    Demand,
    Grant,
    Monitor,
    Order,
    Request,
    Settings,
    SubflowController,
    SubflowRoutes,
    Unknown,
)
from tests.controllers.responsive.made_up import controller_of, fat_tree, flow_between

TREE = fat_tree(4)
HOSTS = [TREE.nodes[host].name for host in TREE.hosts]
SETTINGS = Settings(max_subflows=4)


def grants(orders: list[Order]) -> list[Grant]:
    return [order for order in orders if isinstance(order, Grant)]


def demands(orders: list[Order]) -> dict[int, float]:
    return {order.flow.sport: order.mbps for order in orders if isinstance(order, Demand)}


def test_new_flow_gets_one_path_and_its_demand() -> None:
    controller = controller_of(TREE, SETTINGS)
    flow = flow_between(TREE, "p0e0h0", "p1e0h0")
    orders = controller.begin(flow)
    [grant] = grants(orders)
    assert (grant.number, grant.path[0], grant.path[-1], len(grant.path)) == (0, "p0e0h0", "p1e0h0", 7)
    assert all(TREE.link_between(TREE.index(a), TREE.index(b)) >= 0 for a, b in pairwise(grant.path))
    assert demands(orders) == {1000: 1000.0}


def test_second_flow_avoids_the_first() -> None:
    """Two flows of one edge switch: the second gets the other uplink, whatever the seed."""
    for seed in range(10):
        controller = controller_of(TREE, SETTINGS, seed=seed)
        first = grants(controller.begin(flow_between(TREE, "p0e0h0", "p1e0h0")))[0]
        second = grants(controller.begin(flow_between(TREE, "p0e0h1", "p2e0h0", 1001)))[0]
        assert first.path[2] != second.path[2]


def test_demands_are_sent_to_new_flows_and_on_large_changes() -> None:
    """Three flows of one host: 1000, then 500 each, then a third. With delta_DDT at 40 % the change from 500
    to 333 is not sent."""
    controller = controller_of(TREE, dataclasses.replace(SETTINGS, demand_change=0.4))
    flows = [flow_between(TREE, "p0e0h0", f"p{i + 1}e0h0", 1000 + i) for i in range(3)]
    assert demands(controller.begin(flows[0])) == {1000: 1000.0}
    assert demands(controller.begin(flows[1])) == {1000: 500.0, 1001: 500.0}
    assert demands(controller.begin(flows[2])) == {1002: pytest.approx(1000 / 3)}
    assert demands(controller.end(flows[2])) == {1002: 0.0}
    assert demands(controller.end(flows[1])) == {1001: 0.0, 1000: 1000.0}


def test_gap_is_covered_by_hand() -> None:
    """A lone flow with a gap of 400: the path by the other aggregation switch promises 1000, which is more,
    so there is one subflow more. A gap of 1500 takes the same, and then no path promises anything."""
    for gap_mbps in (400.0, 1500.0):
        controller = controller_of(TREE, SETTINGS)
        flow = flow_between(TREE, "p0e0h0", "p1e0h0")
        controller.begin(flow)
        assert [each.number for each in grants(controller.request(Request(flow, gap_mbps, (0,))))] == [1]
        first, second = (controller.connections[flow].path(i) for i in range(2))
        assert first[2] != second[2]


def test_request_of_a_monitor_that_lost_an_answer_repeats_it() -> None:
    controller = controller_of(TREE, SETTINGS)
    flow = flow_between(TREE, "p0e0h0", "p1e0h0")
    controller.begin(flow)
    lost = controller.request(Request(flow, 400.0, (0,)))
    assert controller.request(Request(flow, 400.0, (0,))) == lost
    assert len(controller.connections[flow].places) == 2


def test_begin_repeated_answers_the_same() -> None:
    controller = controller_of(TREE, SETTINGS)
    flow = flow_between(TREE, "p0e0h0", "p1e0h0")
    first = controller.begin(flow)
    assert sorted(map(str, controller.begin(flow))) == sorted(map(str, first))
    assert controller.routes.aggregates(controller.connections[flow].choices.rows[0][0]) <= 1


def test_hosts_of_one_switch_have_one_path() -> None:
    controller = controller_of(TREE, SETTINGS)
    flow = flow_between(TREE, "p0e0h0", "p0e0h1")
    assert grants(controller.begin(flow))[0].path == ("p0e0h0", "p0e0", "p0e0h1")
    assert controller.request(Request(flow, 500.0, (0,))) == []


def test_unknown_flows_are_answered() -> None:
    controller = controller_of(TREE, SETTINGS)
    flow = flow_between(TREE, "p0e0h0", "p1e0h0")
    assert controller.request(Request(flow, 500.0, (0,))) == [Unknown(flow)]
    assert controller.end(flow) == [Demand(flow, 0.0)]


def test_hosts_that_forward_are_refused() -> None:
    with pytest.raises(UsageError, match="forward"):
        controller_of(topos.build("bcube", {"n": 2, "k": 1}), SETTINGS)


PAIRS = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(HOSTS)).filter(lambda p: p[0] != p[1]),
    min_size=1,
    max_size=12,
)


@given(
    PAIRS,
    st.lists(st.tuples(st.integers(0, 11), st.floats(1, 2000)), max_size=20),
    st.integers(1, 6),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_stop_rules_hold(
    pairs: list[tuple[str, str]], asked: list[tuple[int, float]], most: int, seed: int
) -> None:
    """After a request, the expected throughputs added exceed the gap, or M is reached, or no path promises
    any. Never more than M, never two equal paths, and after all flows have ended nothing is left."""
    controller = controller_of(TREE, dataclasses.replace(SETTINGS, max_subflows=most), seed=seed)
    flows = [flow_between(TREE, src, dst, 1000 + i) for i, (src, dst) in enumerate(pairs)]
    for flow in flows:
        controller.begin(flow)
    for number, gap_mbps in asked:
        flow = flows[number % len(flows)]
        known = controller.connections[flow]
        before, promised = tuple(known.places), _promised(controller, flow, gap_mbps)
        controller.request(Request(flow, gap_mbps, before))
        assert len(known.places) <= most
        assert len(set(known.places.values())) == len(known.places)
        best = max(controller.routes.expected_mbps(flow, row, 1000.0) for row in known.choices.rows)
        has_no_links = not known.choices.rows[0]
        assert promised or len(known.places) == most or best < 1e-5 or has_no_links
    for flow in flows:
        controller.end(flow)
    assert all(controller.routes.aggregates(link) == 0 for link in range(2 * len(TREE.links)))


def _promised(controller: SubflowController, flow: FiveTuple, gap_mbps: float) -> bool:
    """Return whether the request ends because its gap is covered, by replaying it on copies of the routes."""
    twin = copy.deepcopy(controller)
    known = twin.connections[flow]
    while len(known.places) < twin._settings.max_subflows:
        expected = twin._extend(flow)
        if expected <= 0:
            return False
        if expected > gap_mbps:
            return True
        gap_mbps -= expected
    return False


FLOW = FiveTuple("10.0.0.2", "10.1.0.2", 6, 1000, 5001)
OTHER = dataclasses.replace(FLOW, sport=1001)
QUICK = Settings(monitor_s=0.001, demand_gap=0.15, rate_variation=0.05, checks=3)
MBPS = 125
"""Bytes per ms of a flow at 1 Mb/s."""


def watch(settings: Settings = QUICK, *flows: FiveTuple) -> Monitor:
    monitor = Monitor(settings)
    for flow in flows or (FLOW,):
        monitor.begin(flow, 0, 0.0)
        monitor.set_subflow(flow, 0, ("a", "b", "c"))
        monitor.set_demand(flow, 1000.0)
    return monitor


def ticks(monitor: Monitor, rates_mbps: list[float], *flows: FiveTuple) -> list[list[Request]]:
    octets, asked = 0, []
    for number, rate in enumerate(rates_mbps, 1):
        octets += round(rate * MBPS)
        asked.append(monitor.tick(dict.fromkeys(flows or (FLOW,), octets), number / 1000))
    return asked


def test_average_and_request_by_hand() -> None:
    """500 Mb/s throughout: the average is 400, 480, 496, 499.2, so rates differ from it by 100, 20, 4 and
    0.8. The first is not below 5 % of 400; three checks in a row are steady at the fourth tick."""
    asked = ticks(watch(), [500.0] * 4)
    assert asked[:3] == [[], [], []]
    assert asked[3] == [Request(FLOW, asked[3][0].gap_mbps, (0,))]
    assert asked[3][0].gap_mbps == pytest.approx(1000 - 499.2)


def test_unsteady_check_starts_the_count_anew() -> None:
    asked = ticks(watch(), [500.0, 500.0, 500.0, 900.0, 500.0, 500.0, 500.0, 500.0])
    assert [bool(each) for each in asked] == [False] * 7 + [True]


@pytest.mark.parametrize(("rate_mbps", "asks"), [(849.0, True), (855.0, False)])
def test_asks_beyond_the_gap_only(rate_mbps: float, asks: bool) -> None:
    assert any(ticks(watch(), [rate_mbps] * 20)) is asks


def test_count_starts_anew_after_a_request() -> None:
    asked = ticks(watch(), [500.0] * 10)
    assert [number for number, each in enumerate(asked, 1) if each] == [4, 7, 10]


def test_without_a_demand_nothing_is_asked() -> None:
    monitor = Monitor(QUICK)
    monitor.begin(FLOW, 0, 0.0)
    assert not any(ticks(monitor, [100.0] * 10))


def test_idle_flow_asks_for_nothing() -> None:
    """A rate of 0 is never close to its average of 0: a stalled flow has another problem than paths."""
    assert not any(ticks(watch(), [0.0] * 10))


def test_printed_loop_serves_one_flow_per_tick() -> None:
    all_at_once = ticks(watch(QUICK, FLOW, OTHER), [500.0] * 4, FLOW, OTHER)
    assert [request.flow for request in all_at_once[3]] == [FLOW, OTHER]
    printed = dataclasses.replace(QUICK, one_per_tick=True)
    one_by_one = ticks(watch(printed, FLOW, OTHER), [500.0] * 12, FLOW, OTHER)
    assert max(len(each) for each in one_by_one) == 1
    assert {request.flow for each in one_by_one for request in each} == {FLOW, OTHER}


def test_ended_flow_is_forgotten() -> None:
    monitor = watch()
    monitor.end(FLOW)
    monitor.set_demand(FLOW, 1.0)
    assert not monitor.flows and monitor.tick({FLOW: 1}, 1.0) == []


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
