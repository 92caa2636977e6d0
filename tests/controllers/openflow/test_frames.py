"""Frames are parsed to flows; truncated frames and other kinds are ignored."""

from __future__ import annotations

from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple
from controllers.openflow.messages import ArpRequest, arp_reply, parse
from tests.controllers.openflow.fake_switches import frame, tcp


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
