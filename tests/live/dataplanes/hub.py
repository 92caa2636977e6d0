"""Usage: hub.py PORT. A controller as users write one: it floods every packet (OpenFlow 1.0)."""

from __future__ import annotations

import socket
import socketserver
import struct
import sys

HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, PACKET_IN, PACKET_OUT = 0, 2, 3, 5, 10, 13
HEADER = struct.Struct("!BBHI")
FLOOD = 0xFFFB
NO_BUFFER = 0xFFFFFFFF


def message(kind: int, number: int, body: bytes = b"") -> bytes:
    return HEADER.pack(1, kind, HEADER.size + len(body), number) + body


def flooded(packet_in: bytes) -> bytes:
    """Return the packet-out that floods the packet of a packet-in."""
    buffer_id, _, in_port = struct.unpack_from("!IHH", packet_in)
    action = struct.pack("!HHHH", 0, 8, FLOOD, 0)
    data = packet_in[10:] if buffer_id == NO_BUFFER else b""
    return struct.pack("!IHH", buffer_id, in_port, len(action)) + action + data


class Switch(socketserver.BaseRequestHandler):
    """One switch."""

    request: socket.socket

    def handle(self) -> None:
        self.request.sendall(message(HELLO, 1) + message(FEATURES_REQUEST, 2))
        while head := self.request.recv(HEADER.size, socket.MSG_WAITALL):
            _, kind, length, number = HEADER.unpack(head)
            rest = length - HEADER.size
            body = self.request.recv(rest, socket.MSG_WAITALL) if rest else b""
            if kind == ECHO_REQUEST:
                self.request.sendall(message(ECHO_REPLY, number, body))
            elif kind == PACKET_IN:
                self.request.sendall(message(PACKET_OUT, number, flooded(body)))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Switch) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
