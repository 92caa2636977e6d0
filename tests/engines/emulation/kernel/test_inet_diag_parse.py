"""INET_DIAG messages as Linux 6.18 sent them, and as older kernels would."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.emulation.kernel import netlink, sock_diag
from model.flows import AddressPair

DATA = Path(__file__).parents[3] / "data" / "inet_diag"


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
