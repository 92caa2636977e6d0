"""The senders' filter as the kernel reads it, the parser on real messages, and the flow of each subflow."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from common.errors import RunError
from engines.emulation.kernel import netlink
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.measure import socket_table
from engines.emulation.measure.socket_table import (
    SocketReadings,
    SocketTable,
    SubflowIndex,
    senders_request,
    subflow_readings,
)
from fabric._core import SOCKET_RECORD, parse_socket
from model.flows import STRIDE, PlannedFlow

MESSAGE = bytes.fromhex(
    (Path(__file__).parents[2] / "data" / "inet_diag" / "tcp_subflow_client.hex").read_text()
)
REQUEST_BYTES = 56
FLOWS = [
    PlannedFlow(7, "a", "b", "10.0.0.1", "10.0.0.2", 5201, 1100),
    PlannedFlow(8, "a", "c", "10.0.0.1", "10.0.0.3", 5202, 1101),
    PlannedFlow(9, "b", "a", "10.0.0.2", "10.0.0.1", 5201, 1100),
]
A, B, C = (0x0A000001 + i for i in range(3))
JOINED, FELL_BACK = 0b1100, 0b10


def accepts(request: bytes, sport: int, dport: int) -> bool:
    """Return whether the filter accepts, run as by the kernel's inet_diag_bc_run (port comparisons only)."""
    program = netlink.parse_attrs(request, REQUEST_BYTES)[socket_table.REQ_BYTECODE]
    at = 0
    while at < len(program):
        code, yes, otherwise = struct.unpack_from("=BBH", program, at)
        port = struct.unpack_from("=H", program, at + 6)[0] if code != socket_table.BC_JMP else 0
        holds = {
            socket_table.BC_JMP: False,
            socket_table.BC_S_GE: sport >= port,
            socket_table.BC_S_LE: sport <= port,
            socket_table.BC_D_GE: dport >= port,
            socket_table.BC_D_LE: dport <= port,
        }[code]
        at += yes if holds else otherwise
        assert at <= len(program) + 4, "a jump beyond the offset that means no"
    return at == len(program)


@pytest.mark.parametrize(
    ("sport", "dport", "fixed", "any_port"),
    [
        (1100, 5201, True, True),
        (1100 + 31 * STRIDE, 5210, True, True),
        (5201, 1100, False, False),
        (5210, 1100 + 31 * STRIDE, False, False),
        (40000, 5201, False, True),  # iperf3's control connection, or a subflow whose port the kernel chose
        (1100, 5211, False, True),
        (40000, 9001, False, True),
        (1100, 5200, False, True),
    ],
)
def test_the_kernel_leaves_out_what_is_no_senders(
    sport: int, dport: int, fixed: bool, any_port: bool
) -> None:
    assert accepts(senders_request(5201, 5210, fixed_ports=True), sport, dport) is fixed
    assert accepts(senders_request(5201, 5210, fixed_ports=False), sport, dport) is any_port


def with_info(info: bytes) -> bytes:
    attrs = netlink.parse_attrs(MESSAGE, 72)
    attrs[2] = info
    return MESSAGE[:72] + b"".join(netlink.attr(kind, value) for kind, value in attrs.items())


def test_a_message_of_a_real_kernel() -> None:
    records, names = parse_socket(MESSAGE)
    (sock,) = records
    assert names == ["bbr"]
    assert (sock["laddr"], sock["lport"], sock["raddr"], sock["rport"]) == (A, 11000, B, 5001)
    assert (sock["token"], sock["flags"], sock["state"]) == (527170355, 0xCC, 1)
    assert sock["bytes_acked"] == 34842
    assert 0 < sock["min_rtt_us"] < sock["srtt_us"] < sock["rttvar_us"]
    assert 0 == sock["rwnd_limited_us"] == sock["notsent_bytes"] < sock["busy_us"] < 1_000_000


def test_tcp_info_of_older_kernels_is_read_as_far_as_it_reaches() -> None:
    info = netlink.parse_attrs(MESSAGE, 72)[2]
    whole, older = parse_socket(MESSAGE)[0][0], parse_socket(with_info(info[:104]))[0][0]
    for name in ("cwnd_pkts", "srtt_us", "rttvar_us", "retransmits", "token"):
        assert older[name] == whole[name]
    for name in ("bytes_acked", "min_rtt_us", "delivery_rate", "delivered_pkts", "busy_us"):
        assert older[name] == 0 < whole[name]


def test_a_socket_without_information_is_none() -> None:
    attrs = {kind: value for kind, value in netlink.parse_attrs(MESSAGE, 72).items() if kind != 2}
    bare = MESSAGE[:72] + b"".join(netlink.attr(kind, value) for kind, value in attrs.items())
    assert len(parse_socket(bare)[0]) == 0


@pytest.mark.parametrize("length", [0, 71, 200, len(MESSAGE) - 1])
def test_a_cut_message_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        parse_socket(MESSAGE[:length])


def sockets(*rows: tuple[int, int, int, int, int, int]) -> npt.NDArray[np.void]:
    """Sockets from (laddr, lport, raddr, rport, token, flags); host 0 has address A, 1 has B."""
    found = np.zeros(len(rows), SOCKET_RECORD)
    for record, row in zip(found, rows, strict=True):
        for name, value in zip(("laddr", "lport", "raddr", "rport", "token", "flags"), row, strict=True):
            record[name] = value
        record["host"] = row[0] - A
    return found


def assigned(index: SubflowIndex, *rows: tuple[int, int, int, int, int, int]) -> list[tuple[int, int]]:
    flow, subflow = index.assign(sockets(*rows))
    return list(zip(flow.tolist(), subflow.tolist(), strict=True))


def test_subflows_with_planned_ports() -> None:
    assert assigned(
        SubflowIndex(FLOWS),
        (A, 1101 + 2 * STRIDE, C, 5202, 42, JOINED),
        (A, 1100, B, 5201, 41, 1),
        (A, 1101, C, 5202, 42, 1),
        (A, 1100 + STRIDE, B, 5201, 41, JOINED),
        (B, 1100, A, 5201, 0, 0),
    ) == [(8, 2), (7, 0), (8, 0), (7, 1), (9, 0)]


def test_other_connections_carry_no_flow() -> None:
    assert (
        assigned(
            SubflowIndex(FLOWS),
            (A, 40000, B, 5201, 43, 1),  # iperf3's control connection
            (A, 1100, C, 5201, 0, 0),
            (A, 1100, B, 5202, 0, 0),
            (B, 5201, A, 1100, 41, 1),  # the receiver's end
            (C, 1100, A, 5201, 0, 0),
        )
        == [(-1, -1)] * 5
    )
    assert assigned(SubflowIndex([]), (A, 1100, B, 5201, 0, 0)) == [(-1, -1)]


def test_equal_tokens_of_two_hosts_are_two_connections() -> None:
    assert assigned(
        SubflowIndex(FLOWS),
        (A, 1100, B, 5201, 41, 1),
        (B, 1100, A, 5201, 41, 1),
        (B, 1100 + STRIDE, A, 5201, 41, JOINED),
    ) == [(7, 0), (9, 0), (9, 1)]


def test_a_subflow_tried_again_takes_the_free_number_and_keeps_it() -> None:
    index = SubflowIndex(FLOWS)
    first, third = (A, 1100, B, 5201, 41, 1), (A, 1100 + 2 * STRIDE, B, 5201, 41, JOINED)
    again = (A, 1100 + STRIDE + 251, B, 5201, 41, JOINED)
    other = (A, 1100 + STRIDE + 502, B, 5201, 41, JOINED)
    assert assigned(index, again, third, first) == [(7, 1), (7, 2), (7, 0)]
    assert assigned(index, first, other, again, third) == [(7, 0), (7, 3), (7, 1), (7, 2)]
    assert assigned(index, third, other) == [(7, 2), (7, 3)], "the first subflow has died"


def test_ports_of_the_kernels_choice() -> None:
    assert assigned(
        SubflowIndex(FLOWS),
        (A, 51234, B, 9002, 41, JOINED),
        (A, 33333, B, 9002, 41, JOINED),
        (A, 60000, B, 9001, 41, JOINED),
        (A, 1100, B, 5201, 41, 1),
    ) == [(7, 3), (7, 2), (7, 1), (7, 0)]


def table(flow: npt.ArrayLike, subflow: npt.ArrayLike, **columns: Any) -> SocketReadings:
    """Return MPTCP's subflows under Reno, read at t_s = 0, with 0 in all other columns."""
    length = np.size(flow)
    given = {"flow": flow, "subflow": subflow, **columns}
    names = SocketReadings.__dataclass_fields__.keys() - {"t_s", "took_s", "cc_names"}
    values: dict[str, Any] = {name: np.array(given.get(name, np.zeros(length)), np.int64) for name in names}
    values["mptcp"] = np.ones(length, np.bool_)
    return SocketReadings(t_s=0.0, took_s=0.0, cc_names=("reno", "cubic"), **values)


def readings(*rows: tuple[int, int, int, int]) -> SocketReadings:
    """From (flow, subflow, local port, retransmits); the first subflows are of plain TCP."""
    flow, subflow, lport, again = np.array(rows, np.int64).reshape(-1, 4).T
    return replace(table(flow, subflow, lport=lport, retransmits=again), mptcp=subflow > 0)


def test_a_reading_is_one_array() -> None:
    """In a guest, 17 arrays for each look are so many pieces of memory that the machine maps no more."""
    found = np.zeros(3, SOCKET_RECORD)
    found["cwnd_pkts"], found["delivery_rate"], found["cc"] = (4, 5, 6), (7, 8, 9), (1, 0, 1)
    flow, subflow = np.array([0, 0, 1]), np.array([0, 1, 0])
    look = subflow_readings(1.0, 0.1, flow, subflow, found, ("reno", "cubic"))
    columns = [
        value for value in vars(look).values() if isinstance(value, np.ndarray) and value.dtype != bool
    ]
    assert len(columns) == 20
    assert {id(column.base) for column in columns} == {id(look.flow.base)}
    assert look.flow.tolist() == [0, 0, 1]
    assert look.subflow.tolist() == [0, 1, 0]
    assert look.cwnd_pkts.tolist() == [4, 5, 6]
    assert look.delivery_rate_bps.tolist() == [56, 64, 72]
    assert [look.cc_of(flow) for flow in (0, 1)] == ["cubic/reno", "cubic"]


def test_idle_time_is_what_was_not_busy() -> None:
    """Subflows seen twice are idle for a quarter and all of two seconds; rounding makes no share negative."""
    before = readings((0, 0, 1100, 0), (0, 1, 2050, 0), (0, 2, 3000, 0))
    after = readings((0, 0, 1100, 0), (0, 1, 2050, 0), (0, 2, 3000, 0), (1, 0, 1100, 0))
    before = replace(before, t_s=10.0, busy_us=np.array([7, 0, 9]))
    after = replace(after, t_s=12.0, busy_us=np.array([1_500_007, 0, 2_000_109, 500_000]))
    assert after.idle_pct_since(before).tolist() == [25.0, 100.0, 0.0]
    assert len(after.idle_pct_since(readings())) == 0


def test_sums_by_flow() -> None:
    before = readings((0, 0, 1100, 5), (0, 1, 2050, 9), (2, 0, 1100, 1))
    after = readings((0, 0, 1100, 7), (0, 1, 2301, 4), (2, 0, 1100, 1), (2, 1, 2050, 3))
    assert after.counts(4).tolist() == [2, 0, 2, 0]
    assert after.mptcp_counts(4).tolist() == [1, 0, 1, 0]
    assert after.retransmits_since(before, 4).tolist() == [2 + 4, 0, 3, 0]
    assert replace(after, cc=np.array([0, 1, 0, 0])).cc_of(0) == "cubic/reno"
    assert after.retransmits_since(readings(), 3).tolist() == [11, 0, 4]
    acked = replace(after, bytes_acked=np.array([900, 50, 70, 10]))
    earlier = replace(before, bytes_acked=np.array([100, 5, 70]))
    assert acked.acked_since(earlier, 3).tolist() == [800 + 50, 0, 10]


def test_a_flow_from_an_unknown_host_is_refused() -> None:
    with pytest.raises(RunError, match="flows start at a"):
        SocketTable([HostRef("b", 1)], FLOWS)
