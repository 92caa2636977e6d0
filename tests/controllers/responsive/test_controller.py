"""Route calculation and demands on FatTrees."""

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
    Order,
    Request,
    Settings,
    SubflowController,
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
