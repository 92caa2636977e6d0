"""Messages of netlink and INET_DIAG as kernels send them, and as anybody might; iperf3's reports; /proc."""

from __future__ import annotations

import errno
import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engines.emulation.kernel import mptcp_genl, netlink, sock_diag
from engines.emulation.kernel.mptcp_genl import EventKind, MptcpEvent, PathManagement
from engines.emulation.kernel.proc import (
    ALL,
    CpuSampler,
    CpuTimes,
    others_pct,
    parse_stat,
    read_user_ticks,
    softnet_dropped,
    use,
)
from engines.emulation.traffic.iperf3 import parse_report
from fabric import _core
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


ADDRESSES = ((5, "0a000001"), (7, "0a000002"), (9, "9c40"), (10, "1389"))
PATH = AddressPair("10.0.0.1", 40000, "10.0.0.2", 5001)
TOKEN = (1, "cb2ceed7")


def event(kind: int, *attrs: tuple[int, str]) -> MptcpEvent:
    packed = [netlink.attr(number, bytes.fromhex(value)) for number, value in attrs]
    found = mptcp_genl.parse_event(netlink.genl_message(kind, 1, *packed))
    assert found is not None
    return found


def test_events_as_linux_6_18_sent_them() -> None:
    client = event(2, TOKEN, *ADDRESSES)
    assert (client.kind, client.path, client.server_side) == (EventKind.ESTABLISHED, PATH, False)
    assert event(2, TOKEN, (18, "01"), (13, "0200"), *ADDRESSES).server_side
    assert event(2, TOKEN, (13, "0200"), *ADDRESSES).server_side, "the flag alone is enough"
    refused = event(11, TOKEN, (3, "03"), (12, "6f"), *ADDRESSES)
    assert (refused.kind, refused.local_id, refused.error) == (EventKind.SUB_CLOSED, 3, errno.ECONNREFUSED)
    assert event(3, TOKEN).token == client.token
    mapped = "00000000000000000000ffff"
    in_ipv6 = event(2, TOKEN, (6, mapped + "0a000001"), (8, mapped + "0a000002"), *ADDRESSES[2:])
    assert in_ipv6.path == PATH
    listener = netlink.genl_message(15, 1, netlink.attr(9, b"\x13\x89"))
    assert mptcp_genl.parse_event(listener) is None


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


DATA = Path(__file__).parents[2] / "data" / "inet_diag"
RECORDED = [bytes.fromhex(path.read_text()) for path in sorted(DATA.glob("*.hex"))]


def payload(name: str) -> bytes:
    return bytes.fromhex((DATA / name).read_text())


def shortened(message: bytes, info_bytes: int) -> bytes:
    """The same message with its INFO attribute cut, as a kernel with a shorter struct sends it."""
    attrs = netlink.parse_attrs(message, 72)
    attrs[sock_diag.ATTR_INFO] = attrs[sock_diag.ATTR_INFO][:info_bytes]
    return message[:72] + b"".join(netlink.attr(kind, value) for kind, value in attrs.items())


def test_a_joined_subflow() -> None:
    sock = sock_diag.parse_tcp(payload("tcp_subflow_client.hex"))
    assert sock.path == AddressPair("10.0.0.1", 11000, "10.0.0.2", 5001)
    assert sock.cc == "bbr"
    assert sock.bytes_acked == 34842
    assert 0 < sock.min_rtt_us < sock.srtt_us
    assert sock.subflow is not None
    assert (sock.subflow.token, sock.subflow.remote_token) == (527170355, 2392825838)
    assert (sock.subflow.local_id, sock.subflow.remote_id) == (1, 0)


def test_an_mptcp_connection() -> None:
    connection = sock_diag.parse_mptcp(payload("mptcp_server.hex"))
    assert connection.token == 2392825838
    assert (connection.subflows, connection.extra_subflows) == (3, 2)
    assert connection.bytes_received == 100_001
    assert not connection.fallback


def test_mptcp_info_of_older_kernels() -> None:
    """48 bytes before 6.5 (no counters), 80 before 6.7 (no total of subflows)."""
    whole = sock_diag.parse_mptcp(payload("mptcp_server.hex"))
    oldest = sock_diag.parse_mptcp(shortened(payload("mptcp_server.hex"), 44))
    assert oldest.rcv_nxt == whole.rcv_nxt
    assert (oldest.bytes_received, oldest.retransmits, oldest.subflows) == (None, None, None)
    older = sock_diag.parse_mptcp(shortened(payload("mptcp_server.hex"), 80))
    assert older.bytes_received == whole.bytes_received
    assert older.subflows is None


def test_tcp_info_of_older_kernels() -> None:
    sock = sock_diag.parse_tcp(shortened(payload("tcp_subflow_client.hex"), 104))
    assert (sock.bytes_acked, sock.min_rtt_us) == (0, 0)
    assert sock.srtt_us > 0


@pytest.mark.parametrize("length", [0, 40, 71])
def test_a_cut_message_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="inet_diag message"):
        sock_diag.parse_mptcp(payload("mptcp_server.hex")[:length])


def test_requests_have_the_kernels_size() -> None:
    """struct inet_diag_req_v2 is 56 bytes; MPTCP's protocol number needs an attribute of 8 more."""
    path = AddressPair("10.0.0.1", 1, "10.0.0.2", 2)
    assert len(sock_diag.request(6, sock_diag.ESTABLISHED, path)) == 56
    assert len(sock_diag.request(262, sock_diag.ESTABLISHED)) == 64


STAT = """cpu  25107 0 15287 459641 963 0 8343 37 0 0
cpu0 9979 0 7252 233793 95 0 3731 10 0 0
cpu1 15128 0 8034 225847 868 0 4612 27 0 0
intr 1 2 3
ctxt 4
"""
SOFTNET = """00530a79 00000002 00000001 00000000 00000000
005605cd 00000000 00000003 00000000 00000000
"""


def test_stat_lines() -> None:
    times = parse_stat(STAT)
    assert list(times) == [ALL, "cpu0", "cpu1"]
    assert times[ALL] == CpuTimes(user=25107, system=15287, idle=460604, softirq=8343, steal=37)
    of_an_old_kernel = parse_stat("cpu 1 2 3 4 5 6 7\n")
    assert of_an_old_kernel[ALL] == CpuTimes(3, 9, 9, 7, 0)
    with pytest.raises(ValueError, match="no `cpu` line"):
        parse_stat("intr 1\n")


def test_busy_is_the_sum_of_its_parts() -> None:
    result = use(CpuTimes(10, 10, 100, 10, 0), CpuTimes(30, 20, 150, 20, 10))
    assert (result.user_pct, result.system_pct, result.softirq_pct, result.steal_pct) == (20, 10, 10, 10)
    assert result.busy_pct == 50
    assert use(CpuTimes(1, 1, 1, 1, 1), CpuTimes(1, 1, 1, 1, 1)).busy_pct == 0, "no time, no use"


def test_drops_of_all_cpus_count() -> None:
    assert softnet_dropped(SOFTNET) == 2


def test_sampler_on_this_machine() -> None:
    sampler = CpuSampler()
    sum(range(2_000_000))
    sample = sampler.sample()
    assert 0 <= sample.machine.busy_pct <= 100
    assert "cpu0" in sample.cpus


def test_what_is_not_the_run_s_own_is_others() -> None:
    assert others_pct((0, 0, 0), (200, 50, 20)) == 15.0
    assert others_pct((0, 0, 0), (200, 50, 60)) == 0.0
    assert others_pct((1, 1, 1), (1, 1, 1)) == 0.0


def test_own_work_is_seen() -> None:
    before, deadline = read_user_ticks(), time.monotonic() + 20
    worked_until = os.times().user + 0.3
    while os.times().user < worked_until:
        assert time.monotonic() < deadline, "this process had no CPU time"
        sum(range(50_000))
    after = read_user_ticks()
    assert (after[2] - before[2]) / os.sysconf("SC_CLK_TCK") > 0.2
    assert after[0] > before[0]


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
