"""The controller's control socket, for applications in other processes that observe and steer the network.

It is a Unix socket with one JSON object per line in each direction:

    {"op": "flows"}                                   -> [[five-tuple, bytes, [nodes]], ...]
    {"op": "ports"}                                   -> [[node, peer, bytes, packets, dropped], ...]
    {"op": "set_path", "flow": [...], "path": [...]}  -> null
    {"op": "clear_path", "flow": [...]}               -> null
    {"op": "counts"}                                  -> the controller's statistics

The answer is {"ok": true, "result": ...}, or {"ok": false, "error": "..."} for an invalid request. A
five-tuple is [src, dst, protocol, sport, dport]; a path is the names of its nodes from host to host.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.errors import RefabricError, UsageError
from controllers.hashing import FiveTuple
from controllers.scheduler import FlowCount, PortCount

REPLY_S = 10.0


class ControlClient:
    """A `controllers.scheduler.Network` over the control socket. Every call waits at most REPLY_S seconds.

    A flow's bytes are those of its rules in its first switch. They restart when the rules have expired, or
    when its path is set for the first time. In mode `proactive` flows have no rules of their own, so only
    flows whose path was set are listed.
    """

    def __init__(self, path: Path) -> None:
        """Connect. Raises RefabricError if no controller listens there."""
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(REPLY_S)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise RefabricError(f"connecting to the controller at {path}: {error}") from error
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def flows(self) -> Sequence[FlowCount]:
        return [FlowCount(flow_of(flow), octets, tuple(path)) for flow, octets, path in self._ask(op="flows")]

    def ports(self) -> Sequence[PortCount]:
        return [PortCount(*row) for row in self._ask(op="ports")]

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self._ask(op="set_path", flow=parts_of(flow), path=list(path))

    def clear_path(self, flow: FiveTuple) -> None:
        self._ask(op="clear_path", flow=parts_of(flow))

    def counts(self) -> dict[str, int]:
        """Return the controller's statistics: packets in, flows set up ... (`program.ControllerCounts`)."""
        return dict(self._ask(op="counts"))

    def _ask(self, **request: object) -> Any:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            line = self._lines.readline()
        except OSError as error:
            raise RefabricError(f"sending a request to the controller at {self._path}: {error}") from error
        if not line:
            raise RefabricError(f"the controller at {self._path} has ended")
        reply = json.loads(line)
        if not reply["ok"]:
            raise UsageError(str(reply["error"]))
        return reply["result"]


def parts_of(flow: FiveTuple) -> tuple[str, str, int, int, int]:
    """Return a 5-tuple as it is sent."""
    return flow.src, flow.dst, flow.proto, flow.sport, flow.dport


def flow_of(parts: Sequence[Any]) -> FiveTuple:
    """Return the 5-tuple that was sent. Raises ValueError for other parts."""
    src, dst, proto, sport, dport = parts
    return FiveTuple(str(src), str(dst), int(proto), int(sport), int(dport))
