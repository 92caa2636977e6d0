"""A switch on a real socket that greets, reports its ports, confirms barriers and keeps what it receives."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from pathlib import Path

HELLO, ERROR, FEATURES_REQUEST, FEATURES, PACKET_IN, FLOW_MOD = 0, 1, 5, 6, 10, 14
MULTIPART, BARRIER, BARRIER_REPLY = 18, 20, 21
PORT_STATS, PORT_DESC, FLOW_STATS = 4, 13, 1


class WireSwitch:
    """Connect to the program that listens at `path` over OpenFlow 1.3, until either side closes. `seen` has
    the type of every message; `refuse` answers flow-mods with an error."""

    def __init__(
        self, path: Path, dpid: int, ports: Sequence[int], *, versions: int = 1 << 4, refuse: bool = False
    ) -> None:
        self._dpid, self._ports, self._refuse = dpid, ports, refuse
        self.seen: list[int] = []
        self.flow_mods: list[bytes] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(path))
        self._send(HELLO, 0, struct.pack("!HHI", 1, 8, versions))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def packet_in(self, port: int, frame: bytes) -> None:
        match = struct.pack("!HHHBBI", 1, 12, 0x8000, 0, 4, port) + bytes(4)
        self._send(
            PACKET_IN, 0, struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), 0, 0, 0) + match + bytes(2) + frame
        )

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._socket.close()

    def _send(self, kind: int, number: int, body: bytes = b"") -> None:
        self._socket.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), number) + body)

    def _serve(self) -> None:
        try:
            while header := self._exactly(8):
                _, kind, length, number = struct.unpack("!BBHI", header)
                body = self._exactly(length - 8)
                self.seen.append(kind)
                self._answer(kind, number, body)
        except OSError:
            return  # closed meanwhile

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data

    def _answer(self, kind: int, number: int, body: bytes) -> None:
        if kind == FEATURES_REQUEST:
            self._send(FEATURES, number, struct.pack("!QIBBxxII", self._dpid, 0, 254, 0, 0, 0))
        elif kind == BARRIER:
            self._send(BARRIER_REPLY, number)
        elif kind == FLOW_MOD:
            self.flow_mods.append(body)
            if self._refuse:
                self._send(ERROR, number, struct.pack("!HH", 5, 1) + bytes(8))
        elif kind == MULTIPART:
            what = struct.unpack_from("!H", body)[0]
            rows = {PORT_DESC: self._descriptions, PORT_STATS: self._counters}.get(what, lambda: b"")()
            self._send(MULTIPART + 1, number, struct.pack("!HHxxxx", what, 0) + rows)

    def _descriptions(self) -> bytes:
        return b"".join(struct.pack("!I4x6s2x16s8I", port, bytes(6), b"p", *[0] * 8) for port in self._ports)

    def _counters(self) -> bytes:
        return b"".join(
            struct.pack("!I4x12QII", port, 0, 10 * port, 0, 1000 * port, 0, port, *[0] * 6, 1, 0)
            for port in self._ports
        )
