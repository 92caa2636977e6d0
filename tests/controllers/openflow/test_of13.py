"""Messages as OpenFlow bytes: os-ken's parser reads back what is written, and messages of Open vSwitch 3.1.0
(tests/data/openflow, k=4, captured under the lab's controller) are decoded."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers.hashing import PROTO_TCP, PROTO_UDP
from controllers.openflow.messages import (
    Barrier,
    Clear,
    Confirmed,
    DropChoice,
    Echo,
    Features,
    Hello,
    Install,
    Message,
    PacketIn,
    PortChanged,
    PortCounts,
    Ports,
    PortUp,
    Punt,
    Refusal,
    Remove,
    Removed,
    RuleCounts,
    Send,
    SetChoice,
)
from controllers.openflow.of13 import OPENFLOW_13, OPENFLOW_15, Codec, message_length
from controllers.rules import Bucket, Choice, Match

DATA = Path(__file__).parents[2] / "data" / "openflow"
VERSIONS = {OPENFLOW_13: "of13", OPENFLOW_15: "of15"}
FLOW = Match("10.3.1.3", 32, "10.0.0.2", PROTO_TCP, 40000, 5001)
CHOICE = Choice(7, (Bucket(3, 2), Bucket(4, 1)), 0x89ABCDEF)
both = pytest.mark.parametrize("version", VERSIONS)


def _sent(name: str, version: int) -> Any:
    data = bytes.fromhex((DATA / f"{VERSIONS[version]}_{name}.hex").read_text())
    assert message_length(data[:8]) == len(data)
    return Codec(version).decode(data)


def _read_back(message: Message, version: int) -> list[Any]:
    data, found = Codec(version).encode(message), []
    while data:
        header = ofproto_parser.header(data)
        found.append(ofproto_parser.msg(ProtocolDesc(version), *header, data[: header[2]]))
        data = data[header[2] :]
    return found


def _outputs(message: Any) -> list[int]:
    return [action.port for each in message.instructions for action in each.actions]


@both
def test_an_exact_rule(version: int) -> None:
    [rule] = _read_back(Install(FLOW, 200, 4, 10, notify=True), version)
    assert dict(rule.match.items()) == {
        "eth_type": 0x0800, "ipv4_dst": "10.3.1.3", "ipv4_src": "10.0.0.2", "ip_proto": 6, "tcp_src": 40000,
        "tcp_dst": 5001,
    }  # fmt: skip
    of = ProtocolDesc(version).ofproto
    assert (rule.command, rule.priority, rule.idle_timeout) == (of.OFPFC_ADD, 200, 10)
    assert (rule.flags, rule.buffer_id, _outputs(rule)) == (of.OFPFF_SEND_FLOW_REM, of.OFP_NO_BUFFER, [4])


@both
def test_rules_of_other_kinds(version: int) -> None:
    of = ProtocolDesc(version).ofproto
    [prefix] = _read_back(Install(Match("10.1.0.2", 31), 131, CHOICE), version)
    assert dict(prefix.match.items())["ipv4_dst"] == ("10.1.0.2", "255.255.255.254")
    assert [action.group_id for each in prefix.instructions for action in each.actions] == [7]
    [udp] = _read_back(Install(Match("10.3.1.3", 32, "10.0.0.2", PROTO_UDP, 1, 2), 200, 1), version)
    assert {"udp_src", "udp_dst"} <= dict(udp.match.items()).keys()
    [drop] = _read_back(Install(Match("10.99.0.1"), 5, None, 10), version)
    assert not drop.instructions and drop.flags == 0
    [gone] = _read_back(Remove(FLOW, 300), version)
    assert (gone.command, gone.priority, gone.out_port) == (of.OFPFC_DELETE_STRICT, 300, of.OFPP_ANY)
    for arp, ethertype in ((True, 0x0806), (False, 0x0800)):
        [punt] = _read_back(Punt(arp), version)
        assert dict(punt.match.items()) == {"eth_type": ethertype} and _outputs(punt) == [of.OFPP_CONTROLLER]
    rules = _read_back(Clear(), version)[0]
    assert (rules.command, rules.table_id, list(rules.match.items())) == (of.OFPFC_DELETE, of.OFPTT_ALL, [])
    groups = Codec(version).encode(Clear())[rules.msg_len :]
    assert struct.unpack_from("!HBxI", groups, 8) == (of.OFPGC_DELETE, of.OFPGT_SELECT, of.OFPG_ALL)


@both
def test_a_choice_weighs_its_buckets(version: int) -> None:
    of = ProtocolDesc(version).ofproto
    for new, command in ((True, of.OFPGC_ADD), (False, of.OFPGC_MODIFY)):
        data = Codec(version).encode(SetChoice(CHOICE, new))
        assert struct.unpack_from("!HBxI", data, 8) == (command, of.OFPGT_SELECT, 7)
    dropped = Codec(version).encode(DropChoice(7))
    assert struct.unpack_from("!HBxI", dropped, 8) == (of.OFPGC_DELETE, of.OFPGT_SELECT, 7)
    if version == OPENFLOW_13:
        buckets = [struct.unpack_from("!HH12xHHI", data, offset) for offset in (16, 48)]
        assert buckets == [(32, 2, 0, 16, 3), (32, 1, 0, 16, 4)]


def test_a_choice_of_15_says_how_it_hashes() -> None:
    data = Codec(OPENFLOW_15).encode(SetChoice(CHOICE))
    kind, length, vendor, what, method, seed = struct.unpack("!HHIIxxxx16sQ", data[-40:])
    assert (kind, length, vendor, what) == (0xFFFF, 40, 0x154D, 1)
    assert (method.rstrip(b"\0"), seed) == (b"dp_hash", 0x89ABCDEF)
    array = struct.unpack_from("!H", data, 16)[0]
    buckets, offset = [], 24
    while offset < 24 + array:
        size, _, number, _, _, port = struct.unpack_from("!HHIHHI", data, offset)
        weight = struct.unpack_from("!HHH", data, offset + size - 8)
        buckets.append((number, port, weight))
        offset += size
    assert buckets == [(0, 3, (0, 8, 2)), (1, 4, (0, 8, 1))]


@both
def test_frames_go_out_as_they_are_and_barriers_carry_their_number(version: int) -> None:
    sent = Codec(version).encode(Send(3, b"frame" * 20))
    of = ProtocolDesc(version).ofproto
    assert sent.endswith(b"frame" * 20) and struct.pack("!HHI", of.OFPAT_OUTPUT, 16, 3) in sent
    assert struct.unpack_from("!II", sent, 8)[0] == of.OFP_NO_BUFFER
    assert Codec(version).encode(Barrier(77)) == struct.pack("!BBHI", version, of.OFPT_BARRIER_REQUEST, 8, 77)


@both
def test_the_greeting_offers_one_version(version: int) -> None:
    assert Codec(version).decode(Codec(version).hello()) == Hello(frozenset({version}))
    old = struct.pack("!BBHI", 4, 0, 8, 1)
    assert Codec(version).decode(old) == Hello(frozenset({1, 2, 3, 4}))


@both
def test_what_open_vswitch_says_of_itself(version: int) -> None:
    assert _sent("hello", version) == Hello(frozenset({1, OPENFLOW_13, OPENFLOW_15}))
    assert isinstance(_sent("features", version), Features) and 17 <= _sent("features", version).dpid <= 36
    ports = _sent("ports", version)
    assert isinstance(ports, Ports) and ports.last
    assert set(ports.ports) == {PortUp(number, True) for number in (1, 2, 3, 4)}
    assert _sent("port_changed", version) == PortChanged(PortUp(1, False), False)


@both
def test_counters_of_open_vswitch(version: int) -> None:
    ports = _sent("port_counts", version)
    assert isinstance(ports, PortCounts) and ports.last
    assert sorted(each.port for each in ports.ports) == [1, 2, 3, 4]
    assert all(each.tx_octets > 42 * each.tx_packets > 0 for each in ports.ports)
    rules = _sent("rule_counts", version)
    assert isinstance(rules, RuleCounts) and rules.last and rules.number >= 1 << 31
    ping = Match("10.3.1.3", 32, "10.0.0.2", 1)
    [counted] = [rule for rule in rules.rules if rule.match == ping]
    assert counted.octets == 98 * counted.packets


def test_a_packet_that_came_in_and_a_rule_that_went() -> None:
    packet = _sent("packet_in", OPENFLOW_13)
    assert isinstance(packet, PacketIn) and packet.port == 1 and packet.frame[12:14] == b"\x08\x00"
    removed = _sent("removed", OPENFLOW_13)
    assert removed == Removed(Match("10.3.1.3", 32, "10.0.0.2", PROTO_TCP, 43216, 5201), 200)


@both
def test_the_rest_of_the_conversation(version: int) -> None:
    codec = Codec(version)
    assert codec.decode(struct.pack("!BBHI", version, 21, 8, 9)) == Confirmed(9)
    asked = codec.decode(struct.pack("!BBHI", version, 2, 8, 5))
    assert asked == Echo(True, 5, b"")
    assert codec.decode(codec.answer(Echo(True, 5, b"x"))) == Echo(False, 5, b"x")
    refusal = codec.decode(struct.pack("!BBHIHH", version, 1, 20, 6, 6, 1) + codec.echo(0))
    assert isinstance(refusal, Refusal) and refusal.number == 6 and "GROUP_MOD" in refusal.what


@both
def test_bytes_that_are_no_message_are_refused(version: int) -> None:
    with pytest.raises(ValueError, match="a message of 4 bytes"):
        message_length(struct.pack("!BBHI", version, 0, 4, 0))
    with pytest.raises(ValueError, match="cannot be read"):
        Codec(version).decode(struct.pack("!BBHI", version, 12, 16, 0) + bytes(8))
