"""Any bytes from switches and hosts decode to a report or to nothing, or raise a ValueError."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controllers.hashing import FiveTuple
from controllers.openflow.messages import ArpRequest, parse
from controllers.openflow.of13 import OPENFLOW_13, OPENFLOW_15, Codec

DATA = Path(__file__).parents[2] / "data" / "openflow"
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
