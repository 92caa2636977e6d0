"""Monitors and controller together: delay, loss, repetition, and what is counted."""

from __future__ import annotations

import dataclasses

import pytest

from controllers.responsive.controller import Grant, Settings
from controllers.responsive.loop import (
    HEADER_BYTES,
    RULE_BYTES,
    Begun,
    Loop,
    MessageChannel,
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
    counts = loop.channel.counts
    assert (counts.messages, counts.rules, counts.lost) == (5, 10, 0)
    assert counts.octets > 5 * HEADER_BYTES + 10 * RULE_BYTES
    assert size_bytes(Grant(FLOW, 0, ("a", "b", "c"))) > size_bytes(Begun(FLOW))


@pytest.mark.parametrize("seed", range(4))
def test_lost_messages_are_repeated(seed: int) -> None:
    """With half of all messages lost the flow still gets its second subflow, and its end is known."""
    settings = dataclasses.replace(SETTINGS, message_loss=0.5)
    loop, network, controller = looped(TREE, settings, FLOW, seed=seed)
    drive(loop, network, 1000)
    assert len(network.paths[FLOW]) == 2 and loop.channel.counts.lost > 0
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
        lost.append((channel.counts.lost, len(list(channel.arrived(0)))))
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
