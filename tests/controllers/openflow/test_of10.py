"""OpenFlow 1.0 messages as bytes: os-ken's parser reads back what is written."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from common.errors import UsageError
from controllers.hashing import PROTO_TCP
from controllers.openflow.messages import (
    Barrier,
    Clear,
    DropChoice,
    Install,
    Message,
    Punt,
    Remove,
    Send,
    SetChoice,
)
from controllers.openflow.of10 import encode
from controllers.rules import Bucket, Choice, Match

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
