"""The controller's loop: it opens and closes subflows as demands change."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.responsive.controller import Close, Grant, Move, Order, Request, Settings, SubflowController
from controllers.responsive.loop import (
    HEADER_BYTES,
    RULE_BYTES,
    Begun,
    Loop,
    MessageChannel,
    News,
    Outage,
    size_bytes,
)
from tests.controllers.responsive.made_up import (
    NS_PER_MS,
    Rates,
    controller_of,
    drive,
    fat_tree,
    flow_between,
    looped,
)

TREE = fat_tree(4)
FLOW = flow_between(TREE, "p0e0h0", "p1e0h0")
SETTINGS = Settings(monitor_s=0.002, message_s=0.0001, checks=3)


def made(settings: Settings = SETTINGS, mbps_per_subflow: float = 500.0) -> tuple[Loop, Rates]:
    loop, network, _ = looped(TREE, settings, FLOW, mbps_per_subflow)
    return loop, network


def test_life_of_a_flow_by_the_clock() -> None:
    """The first path comes after two messages. The rate is measured at 2, 4, 6 and 8 ms; the third steady
    check in a row is at 8 ms, and the second subflow opens two messages later. Then the demand is met."""
    loop, network = made()
    drive(loop, network, 100)
    assert [(each.t_ns / NS_PER_MS, each.number) for each in loop.opened] == [(0.2, 0), (8.2, 1)]
    assert loop.requests == 1


def test_flow_that_meets_its_demand_has_one_subflow() -> None:
    loop, network = made(mbps_per_subflow=900.0)
    drive(loop, network, 100)
    assert loop.subflows() == {FLOW: 1} and loop.requests == 0


def test_slow_messages_open_late() -> None:
    loop, network = made(dataclasses.replace(SETTINGS, message_s=0.01))
    drive(loop, network, 100)
    assert loop.opened[0].t_ns == 20 * NS_PER_MS


def test_messages_are_counted() -> None:
    """Begun; demand and grant; one request and one grant."""
    loop, network = made()
    drive(loop, network, 100)
    channel = loop.channel
    assert (channel.messages, channel.rules, channel.lost) == (5, 10, 0)
    assert channel.octets > 5 * HEADER_BYTES + 10 * RULE_BYTES
    assert size_bytes(Grant(FLOW, 0, ("a", "b", "c"))) > size_bytes(Begun(FLOW))


@pytest.mark.parametrize("seed", range(4))
def test_lost_messages_are_repeated(seed: int) -> None:
    """With half of all messages lost the flow still gets its second subflow, and its end is known."""
    settings = dataclasses.replace(SETTINGS, message_loss=0.5)
    loop, network, controller = looped(TREE, settings, FLOW, seed=seed)
    drive(loop, network, 1000)
    assert len(network.paths[FLOW]) == 2 and loop.channel.lost > 0
    network.end(FLOW)
    drive(loop, network, 2000)
    assert not controller.connections


def test_flow_that_ends_before_its_grant_arrives_opens_nothing() -> None:
    loop, network = made(dataclasses.replace(SETTINGS, message_s=0.01))
    drive(loop, network, 5)
    network.end(FLOW)
    drive(loop, network, 100)
    assert not loop.opened and not network.refused


def test_same_seed_same_losses() -> None:
    lost = []
    for seed in (1, 1, 2):
        channel = MessageChannel(0, 0.5, seed)
        for _ in range(64):
            channel.send(Begun(FLOW), 0)
        lost.append((channel.lost, len(list(channel.arrived(0)))))
    assert lost[0] == lost[1] and lost[0][0] + lost[0][1] == 64


def outage(at_ms: float, for_ms: float, message_loss: float = 0.0) -> Settings:
    return dataclasses.replace(
        SETTINGS, down_at_s=at_ms / 1000, down_for_s=for_ms / 1000, message_loss=message_loss
    )


def test_flows_keep_their_subflows_while_the_controller_is_down() -> None:
    """It is down when the first flow asks for its second subflow, at 8.1 ms, and when another begins."""
    loop, network = made(outage(5, 50))
    other = flow_between(TREE, "p2e0h0", "p3e0h0")
    drive(loop, network, 20)
    network.begin(other)
    drive(loop, network, 54)
    assert loop.subflows() == {FLOW: 1} and loop.unheard > 2
    drive(loop, network, 200)
    assert loop.subflows() == {FLOW: 2, other: 2}, "both are served after the restart"


def test_a_controller_that_starts_again_learns_the_subflows_that_flows_have() -> None:
    settings = outage(50, 10)
    loop, network, controller = looped(TREE, settings, FLOW)
    drive(loop, network, 59)
    before = controller.connections[FLOW].places.copy()
    drive(loop, network, 100)
    assert controller.connections[FLOW].places == before and len(before) == 2
    links = controller.connections[FLOW].choices.rows
    assert all(controller.routes.aggregates(link) == 1 for place in before.values() for link in links[place])
    assert len(loop.opened) == 2, "no subflow is opened twice"


def test_an_end_during_the_outage_is_known_after_it() -> None:
    settings = outage(20, 20)
    loop, network, controller = looped(TREE, settings, FLOW)
    drive(loop, network, 25)
    network.end(FLOW)
    drive(loop, network, 100)
    assert not controller.connections


def monitors_down(at_ms: float, for_ms: float, message_loss: float = 0.0) -> Settings:
    return dataclasses.replace(outage(at_ms, for_ms, message_loss), down_monitors=1.0)


def test_flows_keep_their_subflows_while_their_monitor_is_down() -> None:
    """It is down when it would ask for the second subflow, at 8 ms; it measures anew from 55 ms on."""
    loop, network = made(monitors_down(5, 50))
    drive(loop, network, 54)
    assert loop.subflows() == {FLOW: 1} and loop.requests == 0
    drive(loop, network, 62)
    assert loop.requests == 1
    drive(loop, network, 200)
    assert loop.subflows() == {FLOW: 2} and not network.refused


def test_a_grant_to_a_monitor_that_is_down_is_lost_and_repeated_later() -> None:
    """The request leaves at 8 ms, and the answer comes at 8.2 ms, when the monitor has gone down."""
    settings = monitors_down(8.15, 20)
    loop, network, controller = looped(TREE, settings, FLOW)
    drive(loop, network, 28)
    assert len(controller.connections[FLOW].places) == 2, "the controller counts on it"
    assert loop.subflows() == {FLOW: 1} and loop.unheard == 1
    drive(loop, network, 100)
    assert loop.subflows() == {FLOW: 2}
    assert len(controller.connections[FLOW].places) == 2


def test_what_begins_and_ends_meanwhile_is_learned_later() -> None:
    settings = monitors_down(30, 30)
    loop, network, controller = looped(TREE, settings, FLOW)
    drive(loop, network, 40)
    other = flow_between(TREE, "p2e0h0", "p3e0h0")
    network.begin(other)
    network.end(FLOW)
    drive(loop, network, 59)
    assert controller.connections.keys() == {FLOW}, "as before: the controller has had no message"
    assert other not in loop.subflows()
    drive(loop, network, 200)
    assert controller.connections.keys() == {other}
    assert loop.subflows()[other] == 2


def test_some_monitors_go_down_and_the_others_work() -> None:
    settings = dataclasses.replace(monitors_down(0, 1000), down_monitors=0.5)
    ends = [(f"p{pod}e0h0", f"p{(pod + 1) % 4}e1h0") for pod in range(4)]
    flows = [flow_between(TREE, *pair) for pair in ends]
    hit = {flow: Outage(settings, 1).hits(flow.src) for flow in flows}
    assert set(hit.values()) == {False, True}
    loop, network = Loop(settings, controller_of(TREE, settings), 1), Rates(500.0)
    for flow in flows:
        network.begin(flow)
    drive(loop, network, 200)
    assert loop.subflows().keys() == {flow for flow in flows if not hit[flow]}


@pytest.mark.parametrize("what", ["controller", "monitors"])
@pytest.mark.parametrize("seed", range(4))
def test_a_restart_is_known_although_half_of_all_messages_are_lost(seed: int, what: str) -> None:
    settings = outage(5, 20, 0.5) if what == "controller" else monitors_down(5, 20, 0.5)
    loop, network, controller = looped(TREE, settings, FLOW, seed=seed)
    drive(loop, network, 1000)
    assert len(controller.connections[FLOW].places) == len(network.paths[FLOW]) == 2
    assert not network.refused


HOSTS = [TREE.nodes[host].name for host in TREE.hosts]
SAME_SENDER = flow_between(TREE, "p0e0h0", "p2e0h0", 1001)
CLOSING = dataclasses.replace(SETTINGS, closes=True)


def closes(orders: list[Order]) -> list[Close]:
    return [order for order in orders if isinstance(order, Close)]


def with_two_subflows(settings: Settings) -> SubflowController:
    controller = controller_of(TREE, settings)
    controller.begin(FLOW)
    controller.request(Request(FLOW, 400.0, (0,)))
    assert len(controller.connections[FLOW].places) == 2
    return controller


def test_demand_that_falls_closes_what_is_not_needed_by_hand() -> None:
    """A flow with both uplinks of its switch shares its host with a second flow now: 500 each. The second
    flow has one of the uplinks, so the first can expect 1000 there and 500 here: one subflow is enough."""
    controller = with_two_subflows(CLOSING)
    [order] = closes(controller.begin(SAME_SENDER))
    assert order == Close(FLOW, 1)
    assert list(controller.connections[FLOW].places) == [0]
    for number, link in enumerate(controller.connections[FLOW].choices.rows[0]):
        assert controller.routes.aggregates(link) <= 2, number


def test_without_the_option_nothing_is_closed() -> None:
    controller = with_two_subflows(dataclasses.replace(CLOSING, closes=False))
    assert not closes(controller.begin(SAME_SENDER))
    assert len(controller.connections[FLOW].places) == 2


def test_a_number_is_used_again_when_its_subflow_is_known_to_be_closed() -> None:
    controller = with_two_subflows(CLOSING)
    controller.begin(SAME_SENDER)
    controller.end(SAME_SENDER)
    assert controller.request(Request(FLOW, 400.0, (0, 1))) == [], "it is about to be closed"
    assert controller.request(Request(FLOW, 400.0, (0,))) == []
    controller.closed(FLOW, 1)
    [grant] = controller.request(Request(FLOW, 400.0, (0,)))
    assert isinstance(grant, Grant) and grant.number == 1


def test_the_loop_closes_and_opens_again() -> None:
    """A flow that carries 500 Mb/s per subflow gets a second one, loses it while a second flow of its sender
    halves its demand, and gets it back."""
    loop, network, controller = looped(TREE, CLOSING, FLOW)
    drive(loop, network, 500)
    assert sorted(network.paths[FLOW]) == [0, 1]
    network.begin(SAME_SENDER)
    drive(loop, network, 1000)
    assert sorted(network.paths[FLOW]) == [0] and loop.subflows()[FLOW] == 1
    network.end(SAME_SENDER)
    drive(loop, network, 2000)
    assert sorted(network.paths[FLOW]) == [0, 1] == sorted(controller.connections[FLOW].places)
    assert not controller.connections[FLOW].closing
    assert [each.number for each in loop.closed] == [1]


def test_the_end_of_a_subflow_by_the_clock() -> None:
    """As docs/responsive-mptcp.md draws it: another flow of the host begins at 30 ms, the controller knows at
    30.1 ms, and the second subflow closes at 30.2 ms."""
    loop, network = Loop(CLOSING, controller_of(TREE, CLOSING), 1), Rates(500.0)
    network.begin(FLOW)
    drive(loop, network, 29.95)
    network.begin(SAME_SENDER)
    drive(loop, network, 60)
    assert [each.t_ns / NS_PER_MS for each in loop.opened if each.flow == FLOW] == [0.2, 8.2]
    assert [(each.t_ns / NS_PER_MS, each.number) for each in loop.closed] == [(30.2, 1)]


@pytest.mark.parametrize("seed", range(8))
def test_lost_orders_are_repeated_until_both_sides_agree(seed: int) -> None:
    """Half of all messages are lost. A flow whose new demand is lost asks again, so it may get its subflow
    back; but the controller and the network know the same subflows in the end. (The first path of a flow that
    asks for nothing may stay lost: it has the hashed path then.)"""
    settings = dataclasses.replace(CLOSING, message_loss=0.5)
    loop, network, controller = looped(TREE, settings, FLOW, seed=seed)
    drive(loop, network, 500)
    network.begin(SAME_SENDER)
    drive(loop, network, 1000)
    assert loop.closed
    for flow in (FLOW, SAME_SENDER):
        known = controller.connections[flow]
        paths = {number: known.path(number) for number in known.places}
        assert {0: paths[0]} | network.paths.get(flow, {}) == paths and not known.closing


PAIRS = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(HOSTS)).filter(lambda p: p[0] != p[1]),
    min_size=2,
    max_size=10,
)


@given(PAIRS, st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_what_is_left_covers_the_demand(pairs: list[tuple[str, str]], seed: int) -> None:
    """Property: right after a close, the flow's other subflows can be expected to carry its demand; each flow
    keeps its first subflow; and when all have ended no link has an aggregate."""
    controller = controller_of(TREE, CLOSING, seed=seed)
    flows = [flow_between(TREE, src, dst, 1000 + i) for i, (src, dst) in enumerate(pairs)]
    for flow in flows:
        orders = controller.begin(flow)
        for order in closes(orders):
            known = controller.connections[order.flow]
            assert 0 in known.places and order.number not in known.places
            rows = [known.row(number) for number in known.places]
            total = controller.routes.total_mbps(order.flow, rows, known.limit_mbps)
            assert known.sent_mbps is not None and total >= known.sent_mbps - 1e-2
            controller.closed(order.flow, order.number)
        controller.request(Request(flow, 1e4, tuple(controller.connections[flow].places)))
    for flow in flows:
        controller.end(flow)
    assert all(controller.routes.aggregates(link) == 0 for link in range(2 * len(TREE.links)))


def test_an_order_from_before_a_restart_is_noted() -> None:
    controller = with_two_subflows(CLOSING)
    paths = [(number, controller.connections[FLOW].path(number)) for number in (0, 1)]
    controller.restart()
    controller.begin(FLOW, paths)
    controller.closed(FLOW, 1)
    assert list(controller.connections[FLOW].places) == [0]
    controller.end(FLOW)
    assert all(controller.routes.aggregates(link) == 0 for link in range(2 * len(TREE.links)))


def link_of(a: str, b: str) -> frozenset[int]:
    link = TREE.link_between(TREE.index(a), TREE.index(b))
    return frozenset((2 * link, 2 * link + 1))


def test_subflows_leave_a_failed_link_and_new_ones_avoid_it() -> None:
    controller = with_two_subflows(CLOSING)
    path = controller.connections[FLOW].path(0)
    failed = link_of(path[2], path[3])
    moves = controller.set_failed(failed)
    assert [move.number for move in moves if isinstance(move, Move)] == [0]
    for number in (0, 1):
        assert not failed.intersection(controller.connections[FLOW].row(number))
    for port in range(20):
        flow = flow_between(TREE, path[0], "p3e0h0", 2000 + port)
        controller.begin(flow)
        assert not failed.intersection(controller.connections[flow].row(0))
    assert controller.set_failed(frozenset()) == []


def test_a_subflow_without_another_path_stays() -> None:
    controller = controller_of(TREE, CLOSING)
    controller.begin(FLOW)
    edge = link_of("p0e0", "p0a0") | link_of("p0e0", "p0a1")
    assert controller.set_failed(edge) == []
    controller.end(FLOW)
    assert all(controller.routes.aggregates(link) == 0 for link in range(2 * len(TREE.links)))


def failing(settings: Settings) -> tuple[tuple[str, ...], list[News]]:
    """Return the first path of FLOW, and the news that a link of it fails at 20 ms."""
    twin = controller_of(TREE, settings)
    twin.begin(FLOW)
    path = twin.connections[FLOW].path(0)
    return path, [News(20 * NS_PER_MS, link_of(path[2], path[3]))]


def test_news_of_a_link_moves_a_subflow_by_message() -> None:
    settings = dataclasses.replace(CLOSING, links_s=0.001)
    path, news = failing(settings)
    loop, network, controller = looped(TREE, settings, FLOW, 900.0, seed=3, news=news)
    drive(loop, network, 19)
    assert network.paths[FLOW] == {0: path} and loop.moved == 0
    drive(loop, network, 20.05)
    assert loop.moved == 0
    drive(loop, network, 20.1)
    assert loop.moved == 1 and network.paths[FLOW][0][2:4] != path[2:4]
    assert network.paths[FLOW][0] == controller.connections[FLOW].path(0)


def test_a_controller_that_was_down_moves_subflows_when_it_starts_again() -> None:
    settings = dataclasses.replace(CLOSING, links_s=0.001, down_at_s=0.015, down_for_s=0.03)
    path, news = failing(settings)
    loop, network, _ = looped(TREE, settings, FLOW, 900.0, seed=3, news=news)
    drive(loop, network, 44)
    assert loop.moved == 0 and network.paths[FLOW] == {0: path}
    drive(loop, network, 60)
    assert loop.moved == 1 and network.paths[FLOW][0][2:4] != path[2:4]
