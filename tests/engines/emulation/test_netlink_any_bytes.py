"""Decoders of kernel messages and iperf3 reports, on any bytes: they return a value or raise ValueError."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engines.emulation.kernel import mptcp_genl, netlink, sock_diag
from engines.emulation.traffic.iperf3 import parse_report
from fabric import _core

DATA = Path(__file__).parents[2] / "data"
RECORDED = [bytes.fromhex(path.read_text()) for path in sorted((DATA / "inet_diag").glob("*.hex"))]


def acked(payload: bytes) -> None:
    for kind in (netlink.NLMSG_ERROR, netlink.NLMSG_DONE):
        for flags in (0, netlink.NLM_F_ACK_TLVS, netlink.NLM_F_ACK_TLVS | netlink.NLM_F_CAPPED):
            netlink.parse_ack(netlink.Message(kind, flags, 1, payload))


DECODERS: dict[str, Callable[[bytes], object]] = {
    "attributes": netlink.parse_attrs,
    "messages": lambda data: list(netlink.decode(data)),
    "acknowledgement": acked,
    "family": lambda data: netlink.parse_family("mptcp_pm", data),
    "event": mptcp_genl.parse_event,
    "tcp": sock_diag.parse_tcp,
    "mptcp": sock_diag.parse_mptcp,
    "core": _core.parse_socket,
}


@st.composite
def attributes(draw: st.DrawFn, depth: int = 2) -> bytes:
    """Draw attributes that fit; some are nested, some have unexpected lengths."""
    parts = b""
    for _ in range(draw(st.integers(0, 4))):
        value = draw(attributes(depth - 1)) if depth and draw(st.booleans()) else draw(st.binary(max_size=8))
        parts += netlink.attr(draw(st.integers(0, 24)), value)
    return parts


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    message = bytearray(draw(st.sampled_from(RECORDED)))
    for _ in range(draw(st.integers(0, 4))):
        message[draw(st.integers(0, len(message) - 1))] = draw(st.integers(0, 255))
    del message[draw(st.integers(0, len(message))) :]
    return bytes(message)


PAYLOADS = (
    st.binary(max_size=120)
    | spoiled()
    | st.builds(
        lambda command, rest: struct.pack("=BBH", command, 1, 0) + rest, st.integers(0, 20), attributes()
    )
    | attributes().map(lambda rest: bytes([2, 1]) + bytes(70) + rest)
)


@pytest.mark.parametrize("decoder", DECODERS)
@settings(deadline=None, max_examples=200)
@given(payload=PAYLOADS)
@example(payload=struct.pack("=i", -22))
@example(payload=struct.pack("=BBH", mptcp_genl.EventKind.CREATED, 1, 0))
def test_any_bytes(decoder: str, payload: bytes) -> None:
    try:
        DECODERS[decoder](payload)
    except ValueError as error:
        assert "\n" not in str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["end", "start", "connected", "sum_sent", "bytes", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
@example({"end": {}, "start": {"connected": [{}]}})
@example({"end": {"sum_sent": {"bytes": float("inf")}}, "start": {"connected": []}})
def test_any_json_is_a_report_or_none(document: Any) -> None:
    try:
        parse_report(json.dumps(document))
    except ValueError:
        return
    assert isinstance(document, dict)
