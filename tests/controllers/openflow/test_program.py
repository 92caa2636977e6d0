"""The controller's decisions, on switches that only keep rules: no packet before its rule, no loop, no
flood."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest

from common.errors import UsageError
from controllers.hashing import FiveTuple
from controllers.openflow.config import Mode
from controllers.openflow.messages import (
    CHOSEN_PRIORITY,
    EXACT_PRIORITY,
    Barrier,
    Clear,
    Install,
    Remove,
    Send,
)
from controllers.openflow.program import IDLE_S, MAX_HELD
from controllers.rules import Routes, exactly
from tests.controllers.openflow.fake_switches import FakeSwitches, frame, tcp
from topos import build

FT4 = build("ft", {"k": 4})
HASHED = Routes(FT4, "hashed", 5)


def _switches(mode: Mode = Mode.REACTIVE, policy: str = "hashed", *, groups: bool = True) -> FakeSwitches:
    switches = FakeSwitches(FT4, mode, policy, groups=groups)
    switches.connect_all()
    return switches


def _set_up(switches: FakeSwitches, flow: FiveTuple) -> tuple[int, ...]:
    assert switches.offer(flow) is None
    switches.confirm_all()
    nodes = switches.offer(flow)
    assert nodes is not None
    return nodes


@pytest.fixture
def switches() -> FakeSwitches:
    return _switches()


def _chosen(switches: FakeSwitches, *away: int) -> list[int]:
    """Return the switches, except some, that have rules of a chosen path."""
    found = switches.rules.items()
    return [
        to for to, rules in found for _, priority in rules if priority == CHOSEN_PRIORITY and to not in away
    ]


def _never_without_a_path(switches: FakeSwitches) -> None:
    while switches.unconfirmed:
        assert switches.offer(tcp()) is not None
        switches.confirm_one()


def _off(nodes: tuple[int, ...]) -> int:
    """A switch that is not on this path."""
    return FT4.dpid(next(switch for switch in FT4.switches if switch not in nodes))


def test_the_first_packet_makes_rules_along_the_hashed_path_and_arrives(switches: FakeSwitches) -> None:
    for sport in range(40000, 40020):
        flow = tcp(sport=sport)
        nodes = _set_up(switches, flow)
        assert nodes == HASHED.path(flow) == switches.controller.flows[flow]
        sent, (entry, onward) = switches.arrived[-1]
        assert (sent, entry, onward) == (frame(flow), nodes[1], nodes[2])
    assert switches.controller.counts.flows_set_up == 20
    assert len(switches.arrived) == 20


def test_nothing_is_put_out_before_all_switches_beyond_have_confirmed(switches: FakeSwitches) -> None:
    nodes = HASHED.path(tcp())
    switches.offer(tcp())
    beyond = [to for to, message in switches.sent if isinstance(message, Install)]
    assert beyond == [FT4.dpid(switch) for switch in reversed(nodes[2:-1])]
    while len(switches.unconfirmed) > 1:
        switches.confirm_one()
        assert not switches.arrived
        assert not switches.rules[FT4.dpid(nodes[1])]
    switches.confirm_one()
    entry = [message for to, message in switches.sent if to == FT4.dpid(nodes[1])]
    assert [type(message) for message in entry] == [Install, Barrier, Send]
    assert isinstance(entry[0], Install)
    assert (entry[0].idle_s, entry[0].notify, entry[0].priority) == (IDLE_S, True, EXACT_PRIORITY)


def test_packets_that_come_meanwhile_follow_in_order_and_not_without_end(switches: FakeSwitches) -> None:
    packets = [frame(tcp()) + bytes([number]) for number in range(MAX_HELD + 5)]
    for packet in packets:
        switches.controller.packet_in(FT4.dpid(FT4.index("p0e0")), 1, packet)
    switches.confirm_all()
    assert [sent for sent, _ in switches.arrived] == packets[:MAX_HELD]
    assert switches.controller.counts.held_dropped == 5
    assert switches.controller.counts.flows_set_up == 1


def test_a_packet_sent_in_just_before_its_rule_makes_no_rule(switches: FakeSwitches) -> None:
    _set_up(switches, tcp())
    switches.sent.clear()
    switches.controller.packet_in(FT4.dpid(FT4.index("p0e0")), 1, frame(tcp()))
    assert [type(message) for _, message in switches.sent] == [Send]


def test_a_rule_that_is_gone_halfway_is_made_again(switches: FakeSwitches) -> None:
    nodes = _set_up(switches, tcp())
    switches.rules[FT4.dpid(nodes[3])].clear()
    assert switches.offer(tcp()) is None
    switches.confirm_all()
    assert switches.offer(tcp()) == nodes
    assert switches.arrived[-1][1] == (nodes[3], nodes[4])


def test_a_packet_off_its_flows_path_is_put_out_at_the_end_of_it(switches: FakeSwitches) -> None:
    nodes = _set_up(switches, tcp())
    switches.arrived.clear()
    switches.controller.packet_in(_off(nodes), 1, frame(tcp()))
    assert switches.arrived == [(frame(tcp()), nodes[-2:])]
    assert switches.controller.counts.astray == 1


def test_one_that_comes_in_while_its_rules_are_made_follows_in_order(switches: FakeSwitches) -> None:
    assert switches.offer(tcp()) is None
    nodes = HASHED.path(tcp())
    switches.controller.packet_in(_off(nodes), 1, frame(tcp()))
    switches.confirm_all()
    assert [hop for _, hop in switches.arrived] == [nodes[1:3], nodes[-2:]]


def test_where_the_last_switch_is_away_a_packet_off_its_path_is_dropped(switches: FakeSwitches) -> None:
    nodes = _set_up(switches, tcp())
    switches.controller.switch_gone(FT4.dpid(nodes[-2]))
    switches.sent.clear()
    switches.controller.packet_in(_off(nodes), 1, frame(tcp()))
    assert switches.sent == [] and switches.controller.counts.astray == 1


def _arp(sender: str, wanted: str, operation: int = 1) -> bytes:
    mac = bytes.fromhex("020000000000")
    ends = (mac, IPv4Address(sender).packed, bytes(6), IPv4Address(wanted).packed)
    return b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, *ends)


def test_arp_is_answered_from_the_topology_and_only_to_the_sender(switches: FakeSwitches) -> None:
    entry = FT4.dpid(FT4.index("p0e0"))
    switches.controller.packet_in(entry, 1, _arp("10.0.0.2", "10.3.1.3"))
    [(to, message)] = switches.sent
    assert to == entry and isinstance(message, Send) and message.port == 1
    assert message.frame[22:28] == bytes.fromhex(FT4.nic_by_ip("10.3.1.3").mac.replace(":", ""))
    assert message.frame[:6] == bytes.fromhex("020000000000") and message.frame[20:22] == b"\0\2"
    for wanted, operation in (("10.99.0.1", 1), ("10.0.0.2", 1), ("10.0.0.3", 2)):
        switches.controller.packet_in(entry, 1, _arp("10.0.0.2", wanted, operation))
    assert len(switches.sent) == 1


def test_the_switch_drops_packets_to_unknown_addresses_from_the_second_on(switches: FakeSwitches) -> None:
    assert switches.offer(tcp(dst="10.99.0.1")) is None
    switches.offer(tcp(dst="10.99.0.1", sport=2))
    assert switches.controller.counts.packets_in == 1
    assert not switches.arrived


def test_a_switch_that_comes_back_is_emptied_and_its_flows_are_set_up_anew(switches: FakeSwitches) -> None:
    first = _set_up(switches, tcp())
    elsewhere = next(
        flow for flow in (tcp(sport=sport) for sport in range(2000, 2100)) if HASHED.path(flow)[3] != first[3]
    )
    _set_up(switches, elsewhere)
    core = FT4.dpid(first[3])
    switches.controller.switch_gone(core)
    assert set(switches.controller.flows) == {elsewhere}
    switches.sent.clear()
    switches.controller.switch_connected(core)
    assert switches.sent[0] == (core, Clear()) and not switches.rules[core]
    assert _set_up(switches, tcp()) == first


def test_what_waits_for_a_switch_that_goes_begins_again_with_the_next_packet(switches: FakeSwitches) -> None:
    nodes = HASHED.path(tcp())
    switches.offer(tcp())
    switches.controller.switch_gone(FT4.dpid(nodes[3]))
    switches.confirm_all()
    assert not switches.arrived and not switches.controller.flows
    switches.offer(tcp())
    assert not switches.controller.flows and switches.controller.counts.held_dropped == 2
    switches.controller.switch_connected(FT4.dpid(nodes[3]))
    assert _set_up(switches, tcp()) == nodes


def test_a_flow_that_idled_out_is_forgotten_and_found_again(switches: FakeSwitches) -> None:
    _set_up(switches, tcp())
    switches.controller.flow_removed(exactly(tcp()), EXACT_PRIORITY)
    assert not switches.controller.flows
    for rules in switches.rules.values():
        rules.clear()
    _set_up(switches, tcp())


def test_programmed_is_reported_once_when_all_have_confirmed() -> None:
    switches = FakeSwitches(FT4, Mode.REACTIVE)
    for switch in FT4.switches:
        assert not switches.programmed
        switches.controller.switch_connected(FT4.dpid(switch))
        switches.confirm_all()
    assert switches.programmed == 1
    switches.controller.switch_connected(FT4.dpid(FT4.switches[0]))
    switches.confirm_all()
    assert switches.programmed == 1


def test_hybrid_makes_rules_for_the_way_up_alone() -> None:
    switches = _switches(Mode.HYBRID)
    for sport in range(40000, 40010):
        flow = tcp(sport=sport)
        switches.sent.clear()
        nodes = _set_up(switches, flow)
        assert nodes == HASHED.path(flow)
        installs = [to for to, message in switches.sent if isinstance(message, Install)]
        assert installs == [FT4.dpid(nodes[2]), FT4.dpid(nodes[1])]
    assert switches.offer(tcp(dst="10.0.0.3")) == switches.nodes("p0e0h0", "p0e0", "p0e0h1")


@pytest.mark.parametrize("groups", [True, False])
def test_proactive_tables_carry_every_pair_and_no_packet_comes_in(groups: bool) -> None:
    switches = _switches(Mode.PROACTIVE, groups=groups)
    for src in FT4.nics:
        for dst in FT4.nics:
            if src is not dst:
                nodes = switches.offer(tcp(src.ip, dst.ip))
                assert nodes in FT4.shortest_paths(src.host, dst.host)
    assert switches.offer(tcp(dst="10.99.0.1")) is None
    assert switches.controller.counts.packets_in == 0
    assert any(switches.choices.values()) == groups


def _cut(switches: FakeSwitches, a: str, b: str, up: bool = False) -> None:
    for here, there in ((a, b), (b, a)):
        node, peer = switches.nodes(here, there)
        switches.controller.port_changed(FT4.dpid(node), switches.ports.towards(node, peer), up)


@pytest.mark.parametrize("mode", list(Mode))
def test_when_a_link_is_cut_every_pair_still_has_a_path_without_it(mode: Mode) -> None:
    switches = _switches(mode)
    flows = [tcp(sport=sport) for sport in range(40000, 40016)]
    before = {flow: switches.offer(flow) or _set_up(switches, flow) for flow in flows}
    cut = switches.nodes("p0e0", "p0a0")
    _cut(switches, "p0e0", "p0a0")
    through = 0
    for flow in flows:
        nodes = switches.offer(flow)
        crossed = set(cut) <= set(before[flow])
        through += crossed
        if mode is Mode.PROACTIVE or not crossed:
            assert nodes is not None
        else:
            assert nodes is None  # its rules are gone, so the controller gets it
            switches.confirm_all()
            nodes = switches.offer(flow)
        assert nodes is not None and not set(cut) <= set(nodes)
        if not crossed:
            assert nodes == before[flow]
    assert through > 0
    back = tcp("10.3.1.3", "10.0.0.2", 5001)
    assert set(cut) - set(switches.offer(back) or _set_up(switches, back))
    switches.sent.clear()
    _cut(switches, "p0e0", "p0a0", up=True)
    fresh = {switches.offer(flow) or _set_up(switches, flow) for flow in (tcp(sport=s) for s in range(9, 40))}
    assert mode is Mode.PROACTIVE or {nodes[2] for nodes in fresh} == set(switches.nodes("p0a0", "p0a1"))


def test_a_hosts_own_link_changes_no_table() -> None:
    switches = _switches(Mode.PROACTIVE)
    switches.controller.port_changed(FT4.dpid(FT4.index("p0e0")), 1, False)
    assert not switches.sent


ELSEWHERE = {"c0": "c3", "c1": "c2", "c2": "c1", "c3": "c0"}
"""Each core switch's counterpart below the other aggregation switches."""


def _other_path(switches: FakeSwitches, nodes: tuple[int, ...]) -> tuple[int, ...]:
    names = switches.name(nodes)
    swap = {"a0": "a1", "a1": "a0"}
    names = [ELSEWHERE.get(name, name) for name in names]
    return switches.nodes(
        *(name[:2] + swap.get(name[2:], name[2:]) if "a" in name else name for name in names)
    )


def test_a_running_flow_is_moved_without_one_moment_without_a_path(switches: FakeSwitches) -> None:
    before = _set_up(switches, tcp())
    after = _other_path(switches, before)
    switches.controller.set_path(tcp(), after)
    seen = [switches.offer(tcp())]
    while switches.unconfirmed:
        switches.confirm_one()
        seen.append(switches.offer(tcp()))
    assert None not in seen and seen[0] == before and seen[-1] == after
    installs = [(to, each) for to, each in switches.sent if isinstance(each, Install)]
    moved = [to for to, install in installs if install.priority == CHOSEN_PRIORITY]
    assert moved == [FT4.dpid(switch) for switch in reversed(after[1:-1])]
    switches.controller.flow_removed(exactly(tcp()), EXACT_PRIORITY)  # the rules it had before
    assert switches.controller.flows[tcp()] == after


def test_a_flow_yet_to_come_takes_the_path_set_for_it_until_it_is_cleared(switches: FakeSwitches) -> None:
    usual = HASHED.path(tcp())
    switches.controller.set_path(tcp(), _other_path(switches, usual))
    assert not switches.sent
    assert _set_up(switches, tcp()) == _other_path(switches, usual)
    switches.controller.clear_path(tcp())
    _never_without_a_path(switches)
    assert switches.offer(tcp()) == usual
    assert not _chosen(switches)
    switches.sent.clear()
    switches.controller.clear_path(tcp())
    assert not switches.sent


def test_a_path_set_while_the_flow_is_being_set_up_comes_next(switches: FakeSwitches) -> None:
    other = _other_path(switches, HASHED.path(tcp()))
    switches.offer(tcp())
    switches.controller.set_path(tcp(), other)
    switches.confirm_all()
    assert switches.offer(tcp()) == other


def test_a_path_set_to_the_usual_one_is_forgotten_when_it_idles(switches: FakeSwitches) -> None:
    switches.offer(tcp())
    switches.controller.set_path(tcp(), HASHED.path(tcp()))
    switches.confirm_all()
    entry = switches.rules[FT4.dpid(FT4.index("p0e0"))]
    assert (exactly(tcp()), CHOSEN_PRIORITY) in entry
    switches.controller.flow_removed(exactly(tcp()), CHOSEN_PRIORITY)
    assert not switches.controller.flows


def test_a_path_cleared_while_it_is_being_set_is_given_back(switches: FakeSwitches) -> None:
    usual = _set_up(switches, tcp())
    switches.controller.set_path(tcp(), _other_path(switches, usual))
    switches.confirm_one()
    switches.controller.clear_path(tcp())
    _never_without_a_path(switches)
    assert switches.offer(tcp()) == usual == switches.controller.flows[tcp()]
    assert not _chosen(switches)


def test_a_path_cleared_where_no_other_is_left_takes_its_rules_along(switches: FakeSwitches) -> None:
    usual = _set_up(switches, tcp())
    switches.controller.set_path(tcp(), usual)
    switches.confirm_all()
    away = FT4.dpid(usual[3])
    switches.controller.switch_gone(away)
    switches.controller.clear_path(tcp())
    assert not _chosen(switches, away)
    assert tcp() not in switches.controller.flows


@pytest.mark.parametrize("runs", [True, False])
def test_a_set_path_that_is_cut_leaves_no_rules_of_before_in_use(switches: FakeSwitches, runs: bool) -> None:
    other = _other_path(switches, _set_up(switches, tcp()) if runs else HASHED.path(tcp()))
    switches.controller.set_path(tcp(), other)
    switches.confirm_all()
    assert runs or _set_up(switches, tcp()) == other
    above, core = switches.name(other[2:4])
    _cut(switches, above, core)
    assert switches.offer(tcp()) is None, "it comes to the controller again, which knows the flow"
    switches.confirm_all()
    found = switches.offer(tcp())
    assert found == switches.controller.flows[tcp()] and found in FT4.shortest_paths(other[0], other[-1])


def test_proactive_switches_take_a_set_path_at_once_and_again_when_they_come_back() -> None:
    switches = _switches(Mode.PROACTIVE)
    usual = switches.offer(tcp())
    assert usual is not None
    other = _other_path(switches, usual)
    switches.controller.set_path(tcp(), other)
    switches.confirm_all()
    assert switches.offer(tcp()) == other
    switches.controller.switch_gone(FT4.dpid(other[3]))
    with pytest.raises(UsageError, match="not connected"):
        switches.controller.set_path(tcp(), other)
    switches.controller.switch_connected(FT4.dpid(other[3]))
    assert switches.offer(tcp()) == other
    switches.controller.set_path(tcp(), usual)
    switches.confirm_all()
    assert switches.offer(tcp()) == usual
    assert FT4.dpid(other[3]) not in _chosen(switches)
    switches.controller.clear_path(tcp())
    assert any(isinstance(message, Remove) for _, message in switches.sent)


def test_random_keeps_a_flows_path_while_it_lives() -> None:
    switches = _switches(policy="random")
    nodes = _set_up(switches, tcp())
    switches.rules[FT4.dpid(nodes[3])].clear()
    switches.offer(tcp())
    switches.confirm_all()
    assert switches.offer(tcp()) == nodes
    drawn = {_set_up(switches, tcp(sport=sport)) for sport in range(2000, 2040)}
    assert len(drawn) == 4


def test_pings_have_rules_without_ports(switches: FakeSwitches) -> None:
    ping = FiveTuple("10.0.0.2", "10.3.1.3", 1, 0, 0)
    assert _set_up(switches, ping) == HASHED.path(ping)
    switches.controller.flow_removed(exactly(ping), EXACT_PRIORITY)
    assert not switches.controller.flows
