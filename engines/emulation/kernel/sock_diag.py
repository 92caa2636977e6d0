"""State of the hosts' TCP and MPTCP sockets, by INET_DIAG over netlink.

One netlink socket per host is opened in its namespace. There are two kinds of requests:

* dumps (`tcp`, `mptcp`) return all sockets of a host. For each, the kernel walks its whole hash table
  (262144 buckets on a machine with 24 GB, shared by all namespaces) and takes 0.4 ms or more. A small
  net.ipv4.tcp_child_ehash_entries, set before the hosts exist, gives each host a small table;
* exact look-ups (`tcp_at`, `mptcp_token`, `listener`) read one hash bucket in microseconds, for polling.

Structs are read by offset, up to the end of the kernel's copy, because older kernels send shorter ones.
Sources: include/uapi/linux/{inet_diag,tcp,mptcp}.h, net/ipv4/{inet,tcp}_diag.c, net/mptcp/{,mptcp_}diag.c.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from common.errors import RunError
from engines.emulation.kernel import netlink
from engines.emulation.kernel.mptcp_genl import IPPROTO_MPTCP
from engines.emulation.kernel.namespaces import HostRef, map_in_netns
from engines.emulation.kernel.proc import reserve_fds
from model.flows import AddressPair

SOCK_DIAG_BY_FAMILY = 20
REQ_PROTOCOL = 3

ATTR_INFO = 2
ATTR_CONG = 4
ATTR_ULP_INFO = 19
ULP_MPTCP = 3
SUBFLOW_TOKEN_REM = 1
SUBFLOW_TOKEN_LOC = 2
SUBFLOW_FLAGS = 8
SUBFLOW_ID_REM = 9
SUBFLOW_ID_LOC = 10

TCP_ESTABLISHED = 1
TCP_LISTEN = 10
ESTABLISHED = 1 << TCP_ESTABLISHED
NO_COOKIE = 0xFFFFFFFF
FLAG_FALLBACK = 1

_EXTENSIONS = 1 << (ATTR_INFO - 1) | 1 << (ATTR_CONG - 1)
_PORTS = struct.Struct(">HH")
_MESSAGE_BYTES = 72


@dataclass(frozen=True, slots=True)
class Subflow:
    """MPTCP's part of a TCP socket. `token` is the connection's local token; `remote_token` is the peer's,
    and 0 except on subflows that this host joined."""

    token: int
    remote_token: int
    local_id: int
    remote_id: int
    flags: int


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """A TCP socket or MPTCP subflow as its host sees it (`path.laddr` is that host's address).

    `bytes_received` counts in-order payload, `bytes_acked` payload that the peer has acknowledged (plus one
    for the SYN), since the connection began. Fields that the kernel does not report are 0. `receive_queue`
    is data that the application has not read yet, in bytes.
    """

    path: AddressPair
    state: int
    receive_queue: int
    send_queue: int
    inode: int
    cc: str
    srtt_us: int
    min_rtt_us: int
    snd_cwnd: int
    total_retrans: int
    bytes_acked: int
    bytes_received: int
    subflow: Subflow | None


@dataclass(frozen=True, slots=True)
class MptcpSocket:
    """An MPTCP connection as its host sees it; `receive_queue` is buffer memory, not payload.

    `bytes_received` counts data-level payload put into the receive queue; it is None before Linux 6.5, where
    differences of `rcv_nxt` (data sequence number, mod 2**64) serve instead. `extra_subflows` is the path
    manager's count, which is wrong after failed attempts. `subflows` (None before 6.7) includes the initial
    subflow and is correct. With `fallback` the connection is plain TCP in all but name. A server whose client
    came without MPTCP has a plain TCP socket instead.
    """

    path: AddressPair
    token: int
    fallback: bool
    extra_subflows: int
    subflows: int | None
    receive_queue: int
    rcv_nxt: int
    snd_una: int
    retransmits: int | None
    bytes_received: int | None


def _uint(data: bytes, offset: int, size: int) -> int | None:
    field = data[offset : offset + size]
    return int.from_bytes(field, sys.byteorder) if len(field) == size else None


def _path(message: bytes) -> AddressPair:
    sport, dport = _PORTS.unpack_from(message, 4)
    length = 4 if message[0] == socket.AF_INET else 16
    family = socket.AF_INET if length == 4 else socket.AF_INET6
    src, dst = message[8 : 8 + length], message[24 : 24 + length]
    return AddressPair(_text(family, src), sport, _text(family, dst), dport)


def _text(family: socket.AddressFamily, packed: bytes) -> str:
    # Sockets of a dual-stack server hold IPv4 addresses in IPv6 form.
    return socket.inet_ntop(family, packed).removeprefix("::ffff:")


def parse_subflow(ulp: bytes) -> Subflow | None:
    """Decode INET_DIAG_ULP_INFO; None unless the socket currently belongs to an MPTCP connection."""
    attrs = netlink.parse_attrs(ulp)
    if ULP_MPTCP not in attrs:
        return None
    info = netlink.parse_attrs(attrs.get(ULP_MPTCP, b""))

    def value(kind: int) -> int:
        return int.from_bytes(info.get(kind, b""), sys.byteorder)

    if not value(SUBFLOW_TOKEN_LOC):
        return None
    return Subflow(
        token=value(SUBFLOW_TOKEN_LOC),
        remote_token=value(SUBFLOW_TOKEN_REM),
        local_id=value(SUBFLOW_ID_LOC),
        remote_id=value(SUBFLOW_ID_REM),
        flags=value(SUBFLOW_FLAGS),
    )


def parse_tcp(payload: bytes) -> TcpSocket:
    """Decode struct inet_diag_msg with struct tcp_info. Raises ValueError on a short message."""
    attrs = _attributes(payload)
    info = attrs.get(ATTR_INFO, b"")
    _, receive_queue, send_queue, _, inode = struct.unpack_from("=5I", payload, 52)
    return TcpSocket(
        path=_path(payload),
        state=payload[1],
        receive_queue=receive_queue,
        send_queue=send_queue,
        inode=inode,
        cc=attrs.get(ATTR_CONG, b"").rstrip(b"\0").decode(errors="replace"),
        srtt_us=_uint(info, 68, 4) or 0,
        min_rtt_us=_uint(info, 148, 4) or 0,
        snd_cwnd=_uint(info, 80, 4) or 0,
        total_retrans=_uint(info, 100, 4) or 0,
        bytes_acked=_uint(info, 120, 8) or 0,
        bytes_received=_uint(info, 128, 8) or 0,
        subflow=parse_subflow(attrs[ATTR_ULP_INFO]) if ATTR_ULP_INFO in attrs else None,
    )


def parse_mptcp(payload: bytes) -> MptcpSocket:
    """Decode struct inet_diag_msg with struct mptcp_info. Raises ValueError on a short message."""
    info = _attributes(payload).get(ATTR_INFO, b"")
    return MptcpSocket(
        path=_path(payload),
        token=_uint(info, 12, 4) or 0,
        fallback=bool((_uint(info, 8, 4) or 0) & FLAG_FALLBACK),
        extra_subflows=_uint(info, 0, 1) or 0,
        subflows=_uint(info, 80, 1),
        receive_queue=struct.unpack_from("=I", payload, 56)[0],
        rcv_nxt=_uint(info, 32, 8) or 0,
        snd_una=_uint(info, 24, 8) or 0,
        retransmits=_uint(info, 44, 4) if len(info) >= 48 else None,
        bytes_received=_uint(info, 64, 8),
    )


def _attributes(payload: bytes) -> dict[int, bytes]:
    if len(payload) < _MESSAGE_BYTES:
        raise ValueError(f"inet_diag message of {len(payload)} bytes")
    return netlink.parse_attrs(payload, _MESSAGE_BYTES)


def request(protocol: int, states: int, path: AddressPair | None = None, token: int = NO_COOKIE) -> bytes:
    """Return struct inet_diag_req_v2 for IPv4, with the protocol as attribute if it is above 255."""
    ports, src, dst = b"\0\0\0\0", b"", b""
    if path is not None:
        ports = _PORTS.pack(path.lport, path.rport)
        src, dst = socket.inet_aton(path.laddr), socket.inet_aton(path.raddr)
    small = protocol if protocol < 256 else socket.IPPROTO_RAW
    head = struct.pack("=BBBBI", socket.AF_INET, small, _EXTENSIONS, 0, states)
    body = head + ports + struct.pack("=16s16sIII", src, dst, 0, token, NO_COOKIE)
    return body if protocol < 256 else body + netlink.attr(REQ_PROTOCOL, struct.pack("=I", protocol))


class SocketSampler:
    """Reads the sockets of `hosts`; only one thread may use it at a time.

    Methods raise RunError that names the host if the kernel refuses (MPTCP requires CAP_NET_ADMIN). Close
    it, or use it as a context manager.
    """

    def __init__(self, hosts: Sequence[HostRef]) -> None:
        reserve_fds(len(hosts))
        self._sockets: dict[HostRef, netlink.NetlinkSocket] = {}

        def open_socket(host: HostRef) -> None:
            self._sockets[host] = netlink.NetlinkSocket(netlink.NETLINK_SOCK_DIAG)

        try:
            map_in_netns([(host.pid, partial(open_socket, host)) for host in hosts])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for sock in self._sockets.values():
            sock.close()

    def tcp(self, host: HostRef, states: int = ESTABLISHED) -> list[TcpSocket]:
        """Return all IPv4 TCP sockets of `host` in `states` (a mask of 1 << TCP state), with subflows."""
        answer = self._ask(host, request(socket.IPPROTO_TCP, states), netlink.NLM_F_DUMP)
        return [parse_tcp(message.payload) for message in answer]

    def mptcp(self, host: HostRef, states: int = ESTABLISHED) -> list[MptcpSocket]:
        """Return all IPv4 MPTCP connections of `host` in `states`."""
        answer = self._ask(host, request(IPPROTO_MPTCP, states), netlink.NLM_F_DUMP)
        return [parse_mptcp(message.payload) for message in answer]

    def tcp_at(self, host: HostRef, path: AddressPair) -> TcpSocket | None:
        """Return the TCP socket of `host` on `path` (as that host sees it); None if there is none."""
        answer = self._ask(host, request(socket.IPPROTO_TCP, 0, path))
        return parse_tcp(answer[0].payload) if answer else None

    def mptcp_token(self, host: HostRef, token: int) -> MptcpSocket | None:
        """Return the MPTCP connection of `host` with this local token; None if there is none."""
        answer = self._ask(host, request(IPPROTO_MPTCP, 0, token=token))
        return parse_mptcp(answer[0].payload) if answer else None

    def listener(self, host: HostRef, ip: str, port: int) -> TcpSocket | None:
        """Return the socket that accepts connections to `ip`:`port` of `host`; its `receive_queue` is the
        number of connections waiting to be accepted."""
        found = self.tcp_at(host, AddressPair(ip, port, "0.0.0.0", 0))
        return found if found is not None and found.state == TCP_LISTEN else None

    def _ask(self, host: HostRef, query: bytes, flags: int = 0) -> list[netlink.Message]:
        try:
            return self._sockets[host].request(SOCK_DIAG_BY_FAMILY, query, flags)
        except OSError as error:
            if error.errno == errno.ENOENT and not flags:
                return []
            raise RunError(f"reading the sockets of {host.name}: {error.strerror}") from error


class ReceiveMeter:
    """Reads the payload bytes that each flow has delivered to its receiver, for goodput by differences.

    `flows` are pairs of receiving host and path as that host sees it (its own address first). The meter
    detects whether a flow is TCP, MPTCP, or MPTCP fallen back to TCP. For MPTCP it counts data-level bytes,
    because the sum over subflows contains duplicates.
    """

    def __init__(self, sampler: SocketSampler, flows: Sequence[tuple[HostRef, AddressPair]]) -> None:
        self._sampler = sampler
        self._flows = tuple(flows)
        self._tokens: dict[int, int] = {}
        self._first_rcv_nxt: dict[int, int] = {}

    def sample(self) -> list[int | None]:
        """Return bytes so far per flow; None without a socket. About 20 us per flow."""
        return [self._received(i, host, path) for i, (host, path) in enumerate(self._flows)]

    def _received(self, flow: int, host: HostRef, path: AddressPair) -> int | None:
        if flow not in self._tokens:
            sock = self._sampler.tcp_at(host, path)
            if sock is None or sock.state != TCP_ESTABLISHED:
                return None
            if sock.subflow is None:
                # Plain TCP, or a young connection whose token is not known yet; try again next time.
                return sock.bytes_received
            self._tokens[flow] = sock.subflow.token
        connection = self._sampler.mptcp_token(host, self._tokens[flow])
        return None if connection is None else self._mptcp_bytes(flow, connection)

    def _mptcp_bytes(self, flow: int, connection: MptcpSocket) -> int:
        if connection.bytes_received is not None:
            return connection.bytes_received
        first = self._first_rcv_nxt.setdefault(flow, connection.rcv_nxt)
        return (connection.rcv_nxt - first) % 2**64
