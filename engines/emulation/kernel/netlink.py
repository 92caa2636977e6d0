"""Netlink: messages, attributes, and a blocking request-reply socket.

Implements the parts of RFC 3549 and include/uapi/linux/netlink.h that generic netlink and sock_diag need:
nested attributes, multi-part dumps, acknowledgements with the kernel's error text (extended ACK). All
integers are in host byte order.

Generic netlink: the family registry (net/netlink/genetlink.c) and message framing.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from common.errors import DeadlineError

NETLINK_SOCK_DIAG = 4
NETLINK_GENERIC = 16

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_DUMP = 0x300
NLM_F_CAPPED = 0x100
NLM_F_ACK_TLVS = 0x200

NLMSG_NOOP = 1
NLMSG_ERROR = 2
NLMSG_DONE = 3

NLA_F_NESTED = 0x8000
NLA_TYPE_MASK = 0x3FFF
NLMSGERR_ATTR_MSG = 1

SOL_NETLINK = 270
NETLINK_ADD_MEMBERSHIP = 1
NETLINK_CAP_ACK = 10
NETLINK_EXT_ACK = 11
SO_RCVBUFFORCE = 33

_HEADER = struct.Struct("=IHHII")
_ATTR = struct.Struct("=HH")
_RECV_BYTES = 1 << 17


@dataclass(frozen=True, slots=True)
class Message:
    """One netlink message: header fields and the bytes after the header."""

    kind: int
    flags: int
    seq: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Ack:
    """An NLMSG_ERROR: `code` is 0 for success or a positive errno; `text` is the kernel's explanation."""

    code: int
    text: str

    def describe(self) -> str:
        name = errno.errorcode.get(self.code, str(self.code))
        return f"{name} ({os.strerror(self.code)})" + (f": {self.text}" if self.text else "")


def u32(attrs: Mapping[int, bytes], kind: int) -> int:
    """Return an attribute's number of four bytes. Raises ValueError if it is missing or of another size."""
    value = attrs.get(kind, b"")
    if len(value) != 4:
        raise ValueError(f"netlink attribute {kind} of {len(value)} bytes instead of 4")
    return int.from_bytes(value, sys.byteorder)


def align4(length: int) -> int:
    return (length + 3) & ~3


def attr(kind: int, value: bytes) -> bytes:
    """Return one attribute, padded to 4 bytes."""
    length = _ATTR.size + len(value)
    return _ATTR.pack(length, kind) + value + bytes(align4(length) - length)


def nested(kind: int, *attrs: bytes) -> bytes:
    """Return an attribute that contains attributes."""
    return attr(kind | NLA_F_NESTED, b"".join(attrs))


def parse_attrs(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return attributes from `offset` on: type without flag bits -> value; the last of each type wins.

    Raises ValueError on a length that does not fit, because a truncated message is not usable.
    """
    found: dict[int, bytes] = {}
    end = len(data)
    while offset + _ATTR.size <= end:
        length, kind = _ATTR.unpack_from(data, offset)
        if length < _ATTR.size or offset + length > end:
            raise ValueError(f"netlink attribute of {length} bytes at {offset} of {end}")
        found[kind & NLA_TYPE_MASK] = data[offset + _ATTR.size : offset + length]
        offset += align4(length)
    return found


def encode(kind: int, flags: int, seq: int, payload: bytes) -> bytes:
    """Return a complete message. The port id is 0; the kernel fills it in."""
    return _HEADER.pack(_HEADER.size + len(payload), kind, flags, seq, 0) + payload


def decode(data: bytes) -> Iterator[Message]:
    """Yield the messages of one datagram. Raises ValueError on a length that does not fit."""
    offset, end = 0, len(data)
    while offset + _HEADER.size <= end:
        length, kind, flags, seq, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > end:
            raise ValueError(f"netlink message of {length} bytes at {offset} of {end}")
        yield Message(kind, flags, seq, data[offset + _HEADER.size : offset + length])
        offset += align4(length)


def parse_ack(message: Message) -> Ack:
    """Decode NLMSG_ERROR (struct nlmsgerr, then extended-ACK attributes) or a failed NLMSG_DONE."""
    payload = message.payload
    (code,) = struct.unpack_from("=i", payload) if len(payload) >= 4 else (0,)
    if not message.flags & NLM_F_ACK_TLVS:
        return Ack(-code, "")
    offset = 4
    if message.kind == NLMSG_ERROR:
        echoed = _HEADER.size
        if not message.flags & NLM_F_CAPPED:
            echoed = int.from_bytes(payload[4:8], sys.byteorder)
        offset += align4(echoed)
    text = parse_attrs(payload, offset).get(NLMSGERR_ATTR_MSG, b"")
    return Ack(-code, text.rstrip(b"\0").decode(errors="replace"))


class NetlinkSocket:
    """A netlink socket in the network namespace in which it was opened.

    Only one thread may use `request` at a time. Every wait ends after `timeout_s` with DeadlineError.
    """

    def __init__(self, protocol: int, timeout_s: float = 5.0) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._timeout_s = timeout_s
        self._seq = 0
        try:
            # Use SO_RCVTIMEO instead of settimeout(), which would poll() first and make MSG_DONTWAIT wait.
            timeval = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1_000_000))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)
            self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
            self._socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
            self._socket.bind((0, 0))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def join(self, group: int, rcvbuf_bytes: int = 1 << 20) -> None:
        """Subscribe to a multicast group, with a buffer for bursts of events (needs CAP_NET_ADMIN)."""
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, rcvbuf_bytes)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)

    def send(self, kind: int, flags: int, payload: bytes) -> int:
        """Send one request; return the sequence number of its answer."""
        self._seq += 1
        self._socket.send(encode(kind, flags | NLM_F_REQUEST, self._seq, payload))
        return self._seq

    def receive(self) -> list[Message]:
        """Return the messages of the next datagram; empty if none is waiting.

        Use with epoll. Raises OSError(ENOBUFS) if the kernel dropped messages.
        """
        try:
            return list(decode(self._socket.recv(_RECV_BYTES, socket.MSG_DONTWAIT)))
        except BlockingIOError:
            return []

    def request(self, kind: int, payload: bytes, flags: int = NLM_F_ACK) -> list[Message]:
        """Send a request and return its answer: all parts of a dump, or all messages up to the ACK.

        Raises OSError with errno and the kernel's text if the kernel refuses, DeadlineError if it does not
        answer.
        """
        seq = self.send(kind, flags, payload)
        answer: list[Message] = []
        while True:
            for message in self._wait():
                if message.seq != seq or message.kind == NLMSG_NOOP:
                    continue
                if message.kind in (NLMSG_ERROR, NLMSG_DONE):
                    ack = parse_ack(message)
                    if ack.code:
                        raise OSError(ack.code, ack.describe())
                    return answer
                answer.append(message)
                if not flags & (NLM_F_ACK | NLM_F_DUMP):
                    return answer

    def _wait(self) -> Iterator[Message]:
        try:
            return decode(self._socket.recv(_RECV_BYTES))
        except BlockingIOError as error:
            raise DeadlineError(f"the kernel sent no netlink answer within {self._timeout_s} s") from error


GENL_ID_CTRL = 0x10
CTRL_CMD_GETFAMILY = 3
CTRL_ATTR_FAMILY_ID = 1
CTRL_ATTR_FAMILY_NAME = 2
CTRL_ATTR_OPS = 6
CTRL_ATTR_MCAST_GROUPS = 7
CTRL_ATTR_OP_ID = 1
CTRL_ATTR_MCAST_GRP_NAME = 1
CTRL_ATTR_MCAST_GRP_ID = 2

HEADER_BYTES = 4


@dataclass(frozen=True)
class GenlFamily:
    """A generic netlink family; its ids are identical in all namespaces until reboot."""

    name: str
    kind: int
    groups: Mapping[str, int]
    commands: frozenset[int]


def genl_message(command: int, version: int, *attrs: bytes) -> bytes:
    """Return the payload of a generic netlink message: struct genlmsghdr and attributes."""
    return struct.pack("=BBH", command, version, 0) + b"".join(attrs)


def parse_genl(payload: bytes) -> tuple[int, dict[int, bytes]]:
    """Return command and attributes of a generic netlink payload. Raises ValueError if it is truncated."""
    if len(payload) < HEADER_BYTES:
        raise ValueError(f"generic netlink payload of {len(payload)} bytes")
    return payload[0], parse_attrs(payload, HEADER_BYTES)


def parse_family(name: str, payload: bytes) -> GenlFamily:
    """Decode the answer to CTRL_CMD_GETFAMILY. Raises ValueError if it is truncated."""
    _, attrs = parse_genl(payload)
    groups = {}
    for entry in parse_attrs(attrs.get(CTRL_ATTR_MCAST_GROUPS, b"")).values():
        group = parse_attrs(entry)
        label = group.get(CTRL_ATTR_MCAST_GRP_NAME, b"").rstrip(b"\0").decode(errors="replace")
        groups[label] = u32(group, CTRL_ATTR_MCAST_GRP_ID)
    operations = parse_attrs(attrs.get(CTRL_ATTR_OPS, b"")).values()
    commands = frozenset(u32(parse_attrs(entry), CTRL_ATTR_OP_ID) for entry in operations)
    kind = int.from_bytes(attrs.get(CTRL_ATTR_FAMILY_ID, b""), sys.byteorder)
    return GenlFamily(name, kind, groups, commands)


def resolve_family(name: str) -> GenlFamily | None:
    """Look up a family by name; None if this kernel does not have it."""
    query = genl_message(CTRL_CMD_GETFAMILY, 1, attr(CTRL_ATTR_FAMILY_NAME, name.encode() + b"\0"))
    with NetlinkSocket(NETLINK_GENERIC, 5.0) as sock:
        try:
            answer = sock.request(GENL_ID_CTRL, query)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise
    return parse_family(name, answer[0].payload)
