"""Bulk readings of every subflow at its sender, fast enough for thousands of subflows each second.

The dump is in C++ (fabric/host_io/socket_dump.hpp); the kernel filters out sockets of receivers. Use
`sock_diag.py` for single sockets.
Sources: include/uapi/linux/inet_diag.h, inet_diag_bc_run and inet_diag_bc_audit in net/ipv4/inet_diag.c.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from common.errors import RunError
from engines.emulation.kernel import mptcp_genl, netlink, sock_diag
from engines.emulation.kernel.namespaces import HostRef, map_in_netns
from engines.emulation.kernel.proc import reserve_fds
from fabric._core import SocketDump
from model.congestion import name_of
from model.flows import STRIDE, PlannedFlow
from model.spec import MAX_SUBFLOWS

Ints = npt.NDArray[np.int64]

REQ_BYTECODE = 1
BC_JMP, BC_S_GE, BC_S_LE, BC_D_GE, BC_D_LE = 1, 2, 3, 4, 5
_SAME = (
    *("cwnd_pkts", "ssthresh_pkts", "srtt_us", "rttvar_us", "min_rtt_us", "retransmits", "bytes_acked"),
    *("delivered_pkts", "unacked_pkts", "notsent_bytes", "busy_us", "rwnd_limited_us", "cc"),
    *("laddr", "lport", "raddr", "rport"),
)
"""Columns of SocketReadings that are fields of fabric._core.SOCKET_RECORD."""
EPHEMERAL = 32768
"""First ephemeral port of the kernel; our data connections use lower local ports."""
MPTCP_FLAGS = 0b1101
"""MPTCP_SUBFLOW_FLAG_MCAP_REM, _JOIN_REM, _JOIN_LOC: the peer supports MPTCP too."""

FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING = 4, 5, 8, 9, 11
STATES = sum(
    1 << state for state in (sock_diag.TCP_ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING)
)
"""States of established connections, and of closing ones that may still send data."""


@dataclass(frozen=True, eq=False)
class SocketReadings:
    """The subflows found, one entry each, sorted by (flow, subflow).

    `t_s` is CLOCK_MONOTONIC in the middle of the reading, which took `took_s`. Subflow 0 is the initial one.
    Counters are cumulative since the subflow began: `retransmits` (segments), `bytes_acked` (payload, plus
    one for the SYN), `delivered_pkts`, `busy_us` (time with unsent or unacknowledged data) and
    `rwnd_limited_us` (the part of it in which the receiver's window was the limit). `notsent_bytes` wait for
    the congestion window. `delivery_rate_bps` is the kernel's latest estimate. Values that the kernel does
    not report are 0. `mptcp` is false for plain TCP, and for MPTCP that fell back at its handshake. `cc`
    indexes `cc_names`. Addresses are numbers; those with `l` are the sender's.
    """

    t_s: float
    took_s: float
    flow: Ints
    subflow: Ints
    cwnd_pkts: Ints
    ssthresh_pkts: Ints
    srtt_us: Ints
    rttvar_us: Ints
    min_rtt_us: Ints
    retransmits: Ints
    bytes_acked: Ints
    delivered_pkts: Ints
    delivery_rate_bps: Ints
    unacked_pkts: Ints
    notsent_bytes: Ints
    busy_us: Ints
    rwnd_limited_us: Ints
    mptcp: npt.NDArray[np.bool_]
    cc: Ints
    cc_names: tuple[str, ...]
    laddr: Ints
    lport: Ints
    raddr: Ints
    rport: Ints

    def __len__(self) -> int:
        return len(self.flow)

    def counts(self, flows: int) -> Ints:
        """Return the number of subflows found for each of the flows 0 .. `flows` - 1."""
        return np.bincount(self.flow, minlength=flows)

    def mptcp_counts(self, flows: int) -> Ints:
        """Return the number of MPTCP subflows of each flow; 0 for plain TCP and after a fallback."""
        return np.bincount(self.flow[self.mptcp], minlength=flows)

    def retransmitted(self, flows: int) -> Ints:
        """Return the segments that each flow has retransmitted so far, on the subflows found."""
        return np.bincount(self.flow, self.retransmits, flows).astype(np.int64)

    def retransmits_since(self, earlier: SocketReadings, flows: int) -> Ints:
        """Return the segments that each flow retransmitted between two readings.

        New subflows count from 0; what a subflow that ended meanwhile retransmitted is unknown.
        """
        return self._counted_since(earlier, "retransmits", flows)

    def acked_since(self, earlier: SocketReadings, flows: int) -> Ints:
        """Return the bytes of each flow acknowledged between two readings; see `retransmits_since`."""
        return self._counted_since(earlier, "bytes_acked", flows)

    def _counted_since(self, earlier: SocketReadings, name: str, flows: int) -> Ints:
        now, then = getattr(self, name), getattr(earlier, name)
        known = dict(zip(_identities(earlier), then.tolist(), strict=True))
        before = np.array([known.get(who, 0) for who in _identities(self)], np.int64)
        counted = np.maximum(now - before, 0)
        return np.bincount(self.flow, weights=counted, minlength=flows).astype(np.int64)

    def idle_pct_since(self, earlier: SocketReadings) -> npt.NDArray[np.float64]:
        """Return the idle share of every subflow in both readings: time with nothing unsent and nothing
        unacknowledged, in percent of the time between them."""
        known = dict(zip(_identities(earlier), earlier.busy_us.tolist(), strict=True))
        now = zip(_identities(self), self.busy_us.tolist(), strict=True)
        busy_us = np.array([busy - known[who] for who, busy in now if who in known], np.float64)
        return np.maximum(0.0, 100 - busy_us / (1e4 * (self.t_s - earlier.t_s)))

    def cc_of(self, flow: int) -> str:
        """Return the congestion controls of a flow's subflows, joined by `/` if they differ."""
        return "/".join(sorted({self.cc_names[number] for number in self.cc[self.flow == flow].tolist()}))


class SocketTable:
    """Reads the subflows of `flows` at their senders among `hosts`; only one thread may use it.

    With the userspace path manager, subflow i of a flow has local port cport + i * STRIDE (model/flows.py). A
    subflow that had to use another port gets the lowest free number. With the in-kernel path manager the
    kernel chooses ports, and subflows are numbered by (remote port, local port). `fixed_ports` selects the
    first case; by default it follows this kernel's path management. Only then can the kernel filter out
    other connections of the same hosts.

    A reading takes 1.2 ms of CPU time for 1024 subflows, 12 ms for 8192, 61 ms for 32 768. Raises RunError
    that names the host if the kernel refuses (MPTCP data requires CAP_NET_ADMIN).
    """

    def __init__(
        self, hosts: Sequence[HostRef], flows: Sequence[PlannedFlow], fixed_ports: bool | None = None
    ) -> None:
        if fixed_ports is None:
            fixed_ports = mptcp_genl.support().level is not mptcp_genl.PathManagement.IN_KERNEL
        self._index = SubflowIndex(flows)
        senders = {flow.src for flow in flows}
        self._hosts = [host for host in hosts if host.name in senders]
        missing = senders - {host.name for host in self._hosts}
        if missing:
            raise RunError(f"reading sockets: flows start at {min(missing)}, which is not among the hosts")
        ports = [flow.port for flow in flows] or [0]
        ask = senders_request(min(ports), max(ports), fixed_ports)
        self._dump: SocketDump | None = _open(self._hosts, ask)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._dump = None

    def read(self) -> SocketReadings:
        """Read all subflows now. Raises RunError that names the host if the kernel refuses."""
        if self._dump is None:
            raise RunError("reading sockets: the socket table is closed")
        start_s = time.monotonic()
        try:
            found = self._dump.read()
        except RuntimeError as error:
            raise RunError(str(error)) from error
        took_s = time.monotonic() - start_s
        flow, subflow = self._index.assign(found)
        ours = np.flatnonzero(flow >= 0)
        order = ours[np.lexsort((subflow[ours], flow[ours]))]
        names = tuple(self._dump.cc_names)
        return subflow_readings(
            start_s + took_s / 2, took_s, flow[order], subflow[order], found[order], names
        )


class SubflowIndex:
    """Maps sockets to flows and subflows. A first subflow is recognised by addresses and ports, further ones
    by the connection's token, which the index learns from the first. Pure except for this memory."""

    def __init__(self, flows: Sequence[PlannedFlow]) -> None:
        self._number = np.array([*(flow.flow for flow in flows), -1], np.int64)
        self._cport = np.array([flow.cport for flow in flows], np.int64)
        self._port = np.array([flow.port for flow in flows], np.int64)
        self._dst = np.array([int(ipaddress.IPv4Address(flow.dst_ip)) for flow in flows], np.int64)
        src = np.array([int(ipaddress.IPv4Address(flow.src_ip)) for flow in flows], np.int64)
        local = src << 16 | self._cport
        self._order = np.argsort(local)
        self._local = local[self._order]
        self._token = np.full(len(flows), -1, np.int64)
        self._odd: dict[tuple[int, ...], int] = {}

    def assign(self, found: npt.NDArray[np.void]) -> tuple[Ints, Ints]:
        """Return flow and subflow numbers of sockets (fabric._core.SOCKET_RECORD); both are -1 for sockets
        of other connections."""
        at = self._flow_at(found) if len(self._cport) else np.full(len(found), -1, np.int64)
        subflow = np.full(len(found), -1, np.int64)
        ours = np.flatnonzero(at >= 0)
        subflow[ours] = self._subflows(found[ours], at[ours])
        return self._number[at], subflow

    def _flow_at(self, found: npt.NDArray[np.void]) -> Ints:
        """Return each socket's position among the flows, or -1."""
        local = _column(found, "laddr") << 16 | _column(found, "lport")
        near = _lookup(self._local, local)
        at = self._order[near]
        first = local == self._local[near]
        first &= _column(found, "raddr") == self._dst[at]
        first &= _column(found, "rport") == self._port[at]
        token = np.where(_is_mptcp(found), _column(found, "host") << 32 | _column(found, "token"), -1)
        learnt = first & (token >= 0)
        self._token[at[learnt]] = token[learnt]
        order = np.argsort(self._token)
        by_token = order[_lookup(self._token[order], token)]
        joined = (token >= 0) & (self._token[by_token] == token)
        return np.where(first, at, np.where(joined, by_token, -1))

    def _subflows(self, found: npt.NDArray[np.void], at: Ints) -> Ints:
        """Return subflow numbers: from the port if it is a planned one, else remembered or assigned."""
        offset = _column(found, "lport") - self._cport[at]
        planned = (offset % STRIDE == 0) & (_column(found, "rport") == self._port[at])
        planned &= (offset >= 0) & (offset < MAX_SUBFLOWS * STRIDE)
        subflow = np.where(planned, offset // STRIDE, -1)
        odd = np.flatnonzero(~planned)
        taken: dict[int, set[int]] = {flow: {0} for flow in at[odd].tolist()}
        for i in np.flatnonzero(planned & np.isin(at, list(taken))).tolist():
            taken[int(at[i])].add(int(subflow[i]))
        for i in odd[np.lexsort((found["lport"][odd], found["rport"][odd]))].tolist():
            subflow[i] = self._odd_number(int(at[i]), found[i], taken[int(at[i])])
        return subflow

    def _odd_number(self, at: int, sock: np.void, taken: set[int]) -> int:
        who = (at, *(int(sock[name]) for name in ("laddr", "lport", "raddr", "rport")))
        number = self._odd.get(who)
        if number is None or number in taken:
            number = next(i for i in range(1, len(taken) + 1) if i not in taken)
            self._odd[who] = number
        taken.add(number)
        return number


class ConnectionTable:
    """Follows the connections to programs that listen: `servers` has names by address and port.

    `look` reads all sockets of the hosts, so connections that live between two looks are not seen. Raises
    RunError that names the host if the kernel refuses.
    """

    def __init__(self, hosts: Sequence[HostRef], servers: Mapping[tuple[str, int], str]) -> None:
        self._names = {
            int(ipaddress.IPv4Address(ip)) << 16 | port: name for (ip, port), name in servers.items()
        }
        self._dump = _open(hosts, sock_diag.request(socket.IPPROTO_TCP, sock_diag.ESTABLISHED))
        self._seen: dict[tuple[int, ...], tuple[str, str, str, int]] = {}

    def look(self) -> None:
        """Read the clients' ends of connections now."""
        found, cc_names = self._dump.read(), self._dump.cc_names
        at = _column(found, "raddr") << 16 | _column(found, "rport")
        ours = np.flatnonzero(np.isin(at, list(self._names)))
        subflows: dict[tuple[int, ...], int] = {}
        for sock, server, is_mptcp in zip(
            found[ours], at[ours].tolist(), _is_mptcp(found[ours]), strict=True
        ):
            own = (int(sock["token"]),) if is_mptcp else (int(sock["lport"]), server)
            who = (int(sock["host"]), *own)
            subflows[who] = subflows.get(who, 0) + 1
            most = max(subflows[who], self._seen[who][3] if who in self._seen else 0)
            protocol = "mptcp" if is_mptcp else "tcp"
            self._seen[who] = (self._names[server], protocol, name_of(cc_names[int(sock["cc"])]), most)

    def rows(self) -> list[tuple[str, str, str, int, float]]:
        """Return name, protocol and congestion control with the number of connections that were seen, and
        their mean number of subflows."""
        groups: dict[tuple[str, str, str], list[int]] = {}
        for *what, most in self._seen.values():
            groups.setdefault((what[0], what[1], what[2]), []).append(most)
        return [(*what, len(each), sum(each) / len(each)) for what, each in sorted(groups.items())]


def senders_request(first_port: int, last_port: int, fixed_ports: bool) -> bytes:
    """Return an INET_DIAG request for senders' sockets of flows to ports `first_port` .. `last_port`.

    With `fixed_ports` it matches sockets from non-ephemeral ports to those ports. Otherwise subflows may have
    any port, and it matches all sockets except those from these ports (receivers of first subflows).
    """
    keep = _to(first_port, last_port) if fixed_ports else _not_from(first_port, last_port)
    return sock_diag.request(socket.IPPROTO_TCP, STATES) + netlink.attr(REQ_BYTECODE, keep)


def _to(first_port: int, last_port: int) -> bytes:
    reject = 4  # one operation beyond the end rejects the socket
    return (
        _compare(BC_D_GE, first_port, 24 + reject)
        + _compare(BC_D_LE, last_port, 16 + reject)
        + _compare(BC_S_LE, EPHEMERAL - 1, 8 + reject)
    )


def _not_from(first_port: int, last_port: int) -> bytes:
    jump_out = struct.pack("=BBH", BC_JMP, 4, 4 + 4)
    return _compare(BC_S_GE, first_port, 20) + _compare(BC_S_LE, last_port, 12) + jump_out


def _compare(code: int, port: int, otherwise: int) -> bytes:
    """Compare the port: continue with the next operation, or skip `otherwise` bytes. The end accepts."""
    return struct.pack("=BBHBBH", code, 8, otherwise, 0, 0, port)


def _open(hosts: Sequence[HostRef], ask: bytes) -> SocketDump:
    """Open a dump with a netlink socket in every host's namespace. Raises RunError that names the host."""
    reserve_fds(len(hosts))
    opened: list[socket.socket] = []

    def open_socket(host: HostRef) -> None:
        try:
            opened.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink.NETLINK_SOCK_DIAG))
        except OSError as error:
            raise RunError(f"opening a sock_diag socket on {host.name}: {error.strerror}") from error

    try:
        map_in_netns([(host.pid, partial(open_socket, host)) for host in hosts])
    except BaseException:
        for sock in opened:
            sock.close()
        raise
    return SocketDump([host.name for host in hosts], [sock.detach() for sock in opened], ask)


def _column(found: npt.NDArray[np.void], name: str) -> Ints:
    column: Ints = found[name].astype(np.int64)
    return column


def _is_mptcp(found: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    spoken: npt.NDArray[np.bool_] = (found["token"] != 0) & (found["flags"] & MPTCP_FLAGS != 0)
    return spoken


def _lookup(ascending: Ints, wanted: Ints) -> Ints:
    """Return the positions of `wanted` in `ascending`; meaningless for values that are not in it."""
    return np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)


def subflow_readings(
    t_s: float, took_s: float, flow: Ints, subflow: Ints, found: npt.NDArray[np.void], names: tuple[str, ...]
) -> SocketReadings:
    """Return the columns as rows of one array: in a guest, many small arrays are many pieces of memory that
    the machine maps one by one, and it maps no more than vm.max_map_count."""
    rows = np.empty((3 + len(_SAME), len(found)), np.int64)
    rows[0], rows[1], rows[2] = flow, subflow, _column(found, "delivery_rate") * 8
    for row, name in zip(rows[3:], _SAME, strict=True):
        row[:] = found[name]
    same: dict[str, Any] = dict(zip(_SAME, rows[3:], strict=True))
    return SocketReadings(
        t_s,
        took_s,
        flow=rows[0],
        subflow=rows[1],
        delivery_rate_bps=rows[2],
        mptcp=_is_mptcp(found),
        cc_names=names,
        **same,
    )


def _identities(readings: SocketReadings) -> list[tuple[int, int, int]]:
    columns = (readings.flow, readings.lport, readings.rport)
    return list(zip(*(column.tolist() for column in columns), strict=True))
