"""The netlink codec, without a kernel."""

from __future__ import annotations

import errno
import struct

import pytest

from engines.emulation.kernel import mptcp_genl, netlink
from engines.emulation.kernel.mptcp_genl import EventKind, PathManagement
from model.flows import AddressPair


def test_attributes_survive_a_round_trip() -> None:
    data = netlink.attr(1, b"abc") + netlink.nested(2, netlink.attr(7, b"\x01\x02")) + netlink.attr(3, b"")
    assert len(data) % 4 == 0
    found = netlink.parse_attrs(data)
    assert found[1] == b"abc"
    assert netlink.parse_attrs(found[2]) == {7: b"\x01\x02"}
    assert found[3] == b""


@pytest.mark.parametrize("length", [0, 3, 9])
def test_an_impossible_attribute_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="netlink attribute"):
        netlink.parse_attrs(struct.pack("=HHI", length, 1, 0))


def test_messages_survive_a_round_trip() -> None:
    data = netlink.encode(20, 1, 7, b"12345678") + netlink.encode(3, 2, 8, b"")
    messages = list(netlink.decode(data))
    assert [(m.kind, m.seq, m.payload) for m in messages] == [(20, 7, b"12345678"), (3, 8, b"")]
    with pytest.raises(ValueError, match="netlink message"):
        list(netlink.decode(data[:20]))


@pytest.mark.parametrize("capped", [True, False])
def test_an_error_carries_the_kernels_text(capped: bool) -> None:
    echoed = netlink.encode(30, 0, 7, b"request!")
    payload = struct.pack("=i", -errno.EINVAL) + (echoed[:16] if capped else echoed)
    payload += netlink.attr(netlink.NLMSGERR_ATTR_MSG, b"invalid token\0")
    flags = netlink.NLM_F_ACK_TLVS | (netlink.NLM_F_CAPPED if capped else 0)
    ack = netlink.parse_ack(netlink.Message(netlink.NLMSG_ERROR, flags, 7, payload))
    assert ack == netlink.Ack(errno.EINVAL, "invalid token")
    assert ack.describe() == "EINVAL (Invalid argument): invalid token"


def test_success_is_code_zero() -> None:
    message = netlink.Message(netlink.NLMSG_ERROR, netlink.NLM_F_CAPPED, 1, bytes(20))
    assert netlink.parse_ack(message).code == 0


def test_family_description() -> None:
    group = netlink.nested(
        1,
        netlink.attr(netlink.CTRL_ATTR_MCAST_GRP_NAME, b"mptcp_pm_events\0"),
        netlink.attr(netlink.CTRL_ATTR_MCAST_GRP_ID, struct.pack("=I", 9)),
    )
    operation = netlink.nested(1, netlink.attr(netlink.CTRL_ATTR_OP_ID, struct.pack("=I", 10)))
    payload = netlink.genl_message(
        1,
        2,
        netlink.attr(netlink.CTRL_ATTR_FAMILY_ID, struct.pack("=H", 28)),
        netlink.nested(netlink.CTRL_ATTR_MCAST_GROUPS, group),
        netlink.nested(netlink.CTRL_ATTR_OPS, operation),
    )
    family = netlink.parse_family("mptcp_pm", payload)
    assert family == netlink.GenlFamily("mptcp_pm", 28, {"mptcp_pm_events": 9}, frozenset({10}))


def event_payload(kind: int, *attrs: tuple[int, str]) -> bytes:
    packed = [netlink.attr(number, bytes.fromhex(value)) for number, value in attrs]
    return netlink.genl_message(kind, 1, *packed)


ADDRESSES = ((5, "0a000001"), (7, "0a000002"), (9, "9c40"), (10, "1389"))
PATH = AddressPair("10.0.0.1", 40000, "10.0.0.2", 5001)


def test_events_as_linux_6_18_sent_them() -> None:
    client = mptcp_genl.parse_event(event_payload(2, (1, "cb2ceed7"), *ADDRESSES))
    assert client is not None
    assert (client.kind, client.path, client.server_side) == (EventKind.ESTABLISHED, PATH, False)
    server = mptcp_genl.parse_event(event_payload(2, (1, "cb2ceed7"), (18, "01"), (13, "0200"), *ADDRESSES))
    assert server is not None
    assert server.server_side
    refused = mptcp_genl.parse_event(event_payload(11, (1, "cb2ceed7"), (3, "03"), (12, "6f"), *ADDRESSES))
    assert refused is not None
    assert (refused.kind, refused.local_id, refused.error) == (EventKind.SUB_CLOSED, 3, errno.ECONNREFUSED)
    closed = mptcp_genl.parse_event(event_payload(3, (1, "cb2ceed7")))
    assert closed is not None
    assert closed.token == client.token


def test_the_server_side_flag_alone_is_enough() -> None:
    event = mptcp_genl.parse_event(event_payload(2, (1, "cb2ceed7"), (13, "0200"), *ADDRESSES))
    assert event is not None
    assert event.server_side


def test_listener_events_are_of_no_interest() -> None:
    assert mptcp_genl.parse_event(event_payload(15, (9, "1389"))) is None


def test_ipv4_in_ipv6_form_is_ipv4() -> None:
    mapped = "00000000000000000000ffff"
    event = mptcp_genl.parse_event(
        event_payload(2, (1, "01000000"), (6, mapped + "0a000001"), (8, mapped + "0a000002"), *ADDRESSES[2:])
    )
    assert event is not None
    assert event.path == PATH


def test_subflow_create_names_port_and_id() -> None:
    command, attrs = netlink.parse_genl(mptcp_genl.subflow_create(0x01020304, PATH, 5))
    local = netlink.parse_attrs(attrs[mptcp_genl.ATTR_ADDR])
    remote = netlink.parse_attrs(attrs[mptcp_genl.ATTR_ADDR_REMOTE])
    assert command == mptcp_genl.CMD_SUBFLOW_CREATE
    assert attrs[mptcp_genl.ATTR_TOKEN] == struct.pack("=I", 0x01020304)
    assert local[mptcp_genl.ADDR_ID] == b"\x05"
    assert local[mptcp_genl.ADDR_PORT] == struct.pack("=H", 40000)
    assert mptcp_genl.ADDR_ID not in remote


def test_three_kinds_of_kernel() -> None:
    old = netlink.GenlFamily("mptcp_pm", 28, {}, frozenset(range(1, 8)))
    new = netlink.GenlFamily("mptcp_pm", 28, {}, frozenset(range(1, 12)))
    sysctl = ("net.mptcp.pm_type", "1")
    assert mptcp_genl.classify("Protocol not supported", None, None).level is PathManagement.NONE
    assert mptcp_genl.classify("", old, None).level is PathManagement.IN_KERNEL
    found = mptcp_genl.classify("", new, sysctl)
    assert found == mptcp_genl.MptcpSupport(PathManagement.USERSPACE, sysctl, "")
    assert "install" in mptcp_genl.classify("", old, None).advice
