"""Messages of OpenFlow 1.0 and 1.3 and frames, byte by byte, and what any bytes are decoded to."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from common.errors import UsageError
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple
from controllers.openflow.messages import (
    ArpRequest,
    Barrier,
    Clear,
    Confirmed,
    CounterReply,
    DropChoice,
    Echo,
    Features,
    Hello,
    Install,
    Message,
    PacketIn,
    PortCounter,
    Ports,
    Punt,
    Refusal,
    Remove,
    Removed,
    RuleCount,
    Send,
    SetChoice,
    arp_reply,
    parse,
)
from controllers.openflow.of10 import encode
from controllers.openflow.of13 import OPENFLOW_13, OPENFLOW_15, Codec, message_length
from controllers.rules import Bucket, Choice, Match
from tests.controllers.openflow.fake_switches import frame, tcp

FLOW = Match("10.3.1.3", 32, "10.0.0.2", PROTO_TCP, 40000, 5001)
CHOICE = Choice(1, (Bucket(3, 1), Bucket(4, 1)), 7)
NOTHING = 0x3FFFFF & ~(0x3F << 8) & ~(0x3F << 14) | 32 << 8 | 32 << 14
"""All wildcards, addresses as 32 ignored bits."""
ETHERTYPE, PROTO, PORTS = 1 << 4, 1 << 5, 3 << 6


def _read_back(message: Message) -> Any:
    data = encode(message)
    header = ofproto_parser.header(data)
    assert header[:3] == (1, header[1], len(data))
    return ofproto_parser.msg(ProtocolDesc(1), *header, data)


def _number(ip: str) -> int:
    return int(IPv4Address(ip))


def test_an_exact_rule() -> None:
    rule = _read_back(Install(FLOW, 200, 4, 10, notify=True))
    match = rule.match
    assert match.wildcards & (ETHERTYPE | PROTO | PORTS | 0x3F << 8 | 0x3F << 14) == 0
    assert match.wildcards & 0xF == 0xF  # port, VLAN and MACs are left open
    assert (match.dl_type, match.nw_proto, match.tp_src, match.tp_dst) == (0x0800, 6, 40000, 5001)
    assert (match.nw_src, match.nw_dst) == (_number("10.0.0.2"), _number("10.3.1.3"))
    assert (rule.command, rule.priority, rule.idle_timeout, rule.flags) == (0, 200, 10, 1)
    assert [(action.port, action.max_len) for action in rule.actions] == [(4, 0)]
    assert rule.buffer_id == 0xFFFFFFFF


def test_a_pair_and_a_prefix() -> None:
    pair = _read_back(Install(Match("10.3.1.3", src="10.0.0.2"), 132, 3)).match
    assert pair.wildcards & (PROTO | PORTS) == PROTO | PORTS and pair.wildcards >> 8 & 0xFFF == 0
    prefix = _read_back(Install(Match("10.1.0.2", 31), 131, 3)).match
    assert prefix.wildcards >> 14 & 0x3F == 1 and prefix.wildcards >> 8 & 0x3F >= 32
    drop = _read_back(Install(Match("10.99.0.1"), 5, None, 10))
    assert not drop.actions and drop.flags == 0


def test_pings_have_no_ports() -> None:
    match = _read_back(Install(Match("10.3.1.3", 32, "10.0.0.2", 1), 200, 4)).match
    assert match.wildcards & PORTS == PORTS and match.wildcards & PROTO == 0 and match.nw_proto == 1


def test_rules_are_removed() -> None:
    gone = _read_back(Remove(FLOW, 300))
    assert (gone.command, gone.priority, gone.out_port) == (4, 300, 0xFFFF)
    everything = _read_back(Clear())
    assert everything.command == 3 and everything.match.wildcards == 0x3FFFFF


@pytest.mark.parametrize(("arp", "ethertype"), [(True, 0x0806), (False, 0x0800)])
def test_what_goes_to_the_controller_goes_whole(arp: bool, ethertype: int) -> None:
    rule = _read_back(Punt(arp))
    assert rule.match.dl_type == ethertype and rule.match.wildcards & ETHERTYPE == 0
    assert [(action.port, action.max_len) for action in rule.actions] == [(0xFFFD, 0xFFFF)]


def test_frames_and_barriers() -> None:
    data = encode(Send(3, b"frame" * 20))
    assert data[8:12] == b"\xff" * 4 and data[16:24] == bytes([0, 0, 0, 8, 0, 3, 0, 0])
    assert data[24:] == b"frame" * 20
    assert encode(Barrier(0x01020304)) == bytes([1, 18, 0, 8, 1, 2, 3, 4])


@pytest.mark.parametrize("message", [SetChoice(CHOICE), DropChoice(1), Install(FLOW, 1, CHOICE)])
def test_groups_are_refused(message: Message) -> None:
    with pytest.raises(UsageError, match="has no groups"):
        encode(message)


DATA = Path(__file__).parents[2] / "data" / "openflow"
VERSIONS = {OPENFLOW_13: "of13", OPENFLOW_15: "of15"}
WEIGHTED = Choice(7, (Bucket(3, 2), Bucket(4, 1)), 0x89ABCDEF)
both = pytest.mark.parametrize("version", VERSIONS)


def _sent(name: str, version: int) -> Any:
    data = bytes.fromhex((DATA / f"{VERSIONS[version]}_{name}.hex").read_text())
    assert message_length(data[:8]) == len(data)
    return Codec(version).decode(data)


def _read_back_later(message: Message, version: int) -> list[Any]:
    data, found = Codec(version).encode(message), []
    while data:
        header = ofproto_parser.header(data)
        found.append(ofproto_parser.msg(ProtocolDesc(version), *header, data[: header[2]]))
        data = data[header[2] :]
    return found


def _outputs(message: Any) -> list[int]:
    return [action.port for each in message.instructions for action in each.actions]


@both
def test_an_exact_rule_of_later_versions(version: int) -> None:
    [rule] = _read_back_later(Install(FLOW, 200, 4, 10, notify=True), version)
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
    [prefix] = _read_back_later(Install(Match("10.1.0.2", 31), 131, WEIGHTED), version)
    assert dict(prefix.match.items())["ipv4_dst"] == ("10.1.0.2", "255.255.255.254")
    assert [action.group_id for each in prefix.instructions for action in each.actions] == [7]
    [udp] = _read_back_later(Install(Match("10.3.1.3", 32, "10.0.0.2", PROTO_UDP, 1, 2), 200, 1), version)
    assert {"udp_src", "udp_dst"} <= dict(udp.match.items()).keys()
    [drop] = _read_back_later(Install(Match("10.99.0.1"), 5, None, 10), version)
    assert not drop.instructions and drop.flags == 0
    [gone] = _read_back_later(Remove(FLOW, 300), version)
    assert (gone.command, gone.priority, gone.out_port) == (of.OFPFC_DELETE_STRICT, 300, of.OFPP_ANY)
    for arp, ethertype in ((True, 0x0806), (False, 0x0800)):
        [punt] = _read_back_later(Punt(arp), version)
        assert dict(punt.match.items()) == {"eth_type": ethertype} and _outputs(punt) == [of.OFPP_CONTROLLER]
    rules = _read_back_later(Clear(), version)[0]
    assert (rules.command, rules.table_id, list(rules.match.items())) == (of.OFPFC_DELETE, of.OFPTT_ALL, [])
    groups = Codec(version).encode(Clear())[rules.msg_len :]
    assert struct.unpack_from("!HBxI", groups, 8) == (of.OFPGC_DELETE, of.OFPGT_SELECT, of.OFPG_ALL)


@both
def test_a_choice_weighs_its_buckets(version: int) -> None:
    of = ProtocolDesc(version).ofproto
    for new, command in ((True, of.OFPGC_ADD), (False, of.OFPGC_MODIFY)):
        data = Codec(version).encode(SetChoice(WEIGHTED, new))
        assert struct.unpack_from("!HBxI", data, 8) == (command, of.OFPGT_SELECT, 7)
    dropped = Codec(version).encode(DropChoice(7))
    assert struct.unpack_from("!HBxI", dropped, 8) == (of.OFPGC_DELETE, of.OFPGT_SELECT, 7)
    if version == OPENFLOW_13:
        buckets = [struct.unpack_from("!HH12xHHI", data, offset) for offset in (16, 48)]
        assert buckets == [(32, 2, 0, 16, 3), (32, 1, 0, 16, 4)]


def test_a_choice_of_15_says_how_it_hashes() -> None:
    data = Codec(OPENFLOW_15).encode(SetChoice(WEIGHTED))
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
    assert ports.up == dict.fromkeys((1, 2, 3, 4), True)
    assert _sent("port_changed", version) == Ports({1: False})


@both
def test_counters_of_open_vswitch(version: int) -> None:
    ports = _sent("port_counts", version)
    assert isinstance(ports, CounterReply) and ports.last
    counters = [each for each in ports.rows if isinstance(each, PortCounter)]
    assert sorted(each.port for each in counters) == [1, 2, 3, 4]
    assert all(each.tx_octets > 42 * each.tx_packets > 0 for each in counters)
    rules = _sent("rule_counts", version)
    assert isinstance(rules, CounterReply) and rules.last and rules.number >= 1 << 31
    ping = Match("10.3.1.3", 32, "10.0.0.2", 1)
    [counted] = [rule for rule in rules.rows if isinstance(rule, RuleCount) and rule.match == ping]
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


def test_flows_are_read() -> None:
    for flow in (tcp(), FiveTuple("10.0.0.2", "10.1.1.1", PROTO_UDP, 53, 65535)):
        assert parse(frame(flow)) == flow


def test_protocols_without_ports_have_none() -> None:
    ping = frame(FiveTuple("10.0.0.2", "10.1.1.1", 1, 8, 9))
    assert parse(ping) == FiveTuple("10.0.0.2", "10.1.1.1", 1, 0, 0)


def test_options_of_the_header_are_skipped() -> None:
    plain = frame(tcp())
    longer = plain[:14] + bytes([0x46]) + plain[15:34] + b"\1\1\1\1" + plain[34:]
    assert parse(longer) == tcp()


def test_later_fragments_have_no_ports() -> None:
    plain = bytearray(frame(tcp()))
    plain[20:22] = b"\x00\x10"
    assert parse(bytes(plain)) == FiveTuple("10.0.0.2", "10.3.1.3", PROTO_TCP, 0, 0)


def test_frames_without_a_flow_are_ignored() -> None:
    whole = frame(tcp())
    for cut in (0, 13, 20, 33, 36):
        assert parse(whole[:cut]) is None
    assert parse(whole[:12] + b"\x86\xdd" + whole[14:]) is None
    assert parse(whole[:14] + b"\x65" + whole[15:]) is None
    assert parse(whole[:14] + b"\x44" + whole[15:]) is None


def test_an_answered_request_is_no_request() -> None:
    request = ArpRequest("02:00:00:00:00:01", "10.0.0.2", "10.0.0.3")
    reply = arp_reply(request, "02:00:00:00:00:02")
    assert parse(reply) is None and len(reply) == 42
    swapped = reply[:21] + b"\1" + reply[22:]
    assert parse(swapped) == ArpRequest("02:00:00:00:00:02", "10.0.0.3", "10.0.0.2")
    assert parse(swapped[:41]) is None


CODECS = {"of13": Codec(OPENFLOW_13), "of15": Codec(OPENFLOW_15)}
RECORDED = {path.stem: bytes.fromhex(path.read_text()) for path in sorted(DATA.glob("*.hex"))}


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[str, bytes]:
    """A message that a switch once sent, with some bytes changed, lost or added; its length is right."""
    name = draw(st.sampled_from(sorted(RECORDED)))
    message = bytearray(RECORDED[name])
    for _ in range(draw(st.integers(0, 4))):
        message[draw(st.integers(0, len(message) - 1))] = draw(st.integers(0, 255))
    del message[draw(st.integers(8, len(message))) :]
    message += draw(st.binary(max_size=32))
    message[2:4] = struct.pack("!H", len(message))
    return name, bytes(message)


@settings(deadline=None, max_examples=400)
@given(spoiled())
def test_a_switch_may_send_anything(found: tuple[str, bytes]) -> None:
    name, message = found
    refuses_only(CODECS[name[:4]].decode, message)


@settings(deadline=None)
@given(st.sampled_from(sorted(CODECS)), st.binary(max_size=64))
@example("of13", b"")
@example("of13", bytes([4, 10, 0, 8, 0, 0, 0, 0]))  # a packet without a body
@example("of13", bytes([1, 1, 0, 8, 0, 0, 0, 0]))  # an error in OpenFlow 1.0
def test_any_bytes_decode_or_are_refused(name: str, message: bytes) -> None:
    refuses_only(CODECS[name].decode, message)


def refuses_only(decode: Callable[[bytes], object], message: bytes) -> None:
    try:
        decode(message)
    except ValueError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", [name for name in RECORDED if not name.endswith("hello")])
def test_a_message_cut_short_is_refused(name: str) -> None:
    message = RECORDED[name]
    with pytest.raises(ValueError, match="header gives another length"):
        CODECS[name[:4]].decode(message[:-1])


@given(st.binary(max_size=80))
@example(bytes(12) + b"\x08\x00\x41" + bytes(30))  # an IP header shorter than its minimum
def test_a_frame_of_any_bytes_is_a_flow_an_arp_request_or_nothing(frame: bytes) -> None:
    found = parse(frame)
    if isinstance(found, FiveTuple):
        assert str(IPv4Address(found.src)) == found.src
        assert frame[12:14] == b"\x08\x00"
    elif isinstance(found, ArpRequest):
        assert frame[12:14] == b"\x08\x06"
    else:
        assert found is None
