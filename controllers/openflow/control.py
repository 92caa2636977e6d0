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

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from common.errors import RefabricError, UsageError
from controllers.hashing import FiveTuple
from controllers.openflow.channel import SwitchChannel
from controllers.openflow.program import EcmpController
from controllers.rules import exactly
from controllers.scheduler import FlowCount, PortCount
from topos.topology import SwitchPorts, Topology

REPLY_S = 10.0


class Served(Protocol):
    """The part of a controller that the control socket uses."""

    topology: Topology
    channels: dict[int, SwitchChannel]
    controller: EcmpController


class ControlServer:
    """Answers requests one at a time on each connection."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._names = [node.name for node in served.topology.nodes]
        self._ports = SwitchPorts(served.topology)
        self._server: asyncio.AbstractServer | None = None

    async def start(self, path: Path) -> None:
        """Start the server. Raises UsageError if the socket cannot be created there."""
        try:
            self._server = await asyncio.start_unix_server(self._accept, path)
        except OSError as error:
            raise UsageError(f"cannot make the control socket {path}: {error}") from error

    def stop(self) -> None:
        if self._server:
            self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass  # The client has disconnected.
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            return {"ok": True, "result": await self._carry_out(json.loads(line))}
        except (RefabricError, ValueError, KeyError, TypeError) as error:
            return {"ok": False, "error": str(error) or type(error).__name__}

    async def _carry_out(self, request: Mapping[str, Any]) -> object:
        controller = self._served.controller
        match request["op"]:
            case "flows":
                return await self._flows()
            case "ports":
                return await self._port_counts()
            case "set_path":
                nodes = [self._served.topology.index(name) for name in request["path"]]
                controller.set_path(_flow(request["flow"]), nodes)
                return None
            case "clear_path":
                controller.clear_path(_flow(request["flow"]))
                return None
            case "counts":
                return asdict(controller.counts)
            case other:
                raise UsageError(f"unknown operation '{other}'")

    async def _flows(self) -> list[Any]:
        """Return flows with the counters of their rules in the first switch of each path."""
        paths = {exactly(flow): (flow, nodes) for flow, nodes in self._served.controller.flows.items()}
        entries = {self._served.topology.dpid(nodes[1]) for _, nodes in paths.values()}
        asked = [(dpid, channel) for dpid, channel in self._served.channels.items() if dpid in entries]
        octets: dict[FiveTuple, int] = {}
        answers = await asyncio.gather(*(channel.rule_counts() for _, channel in asked))
        for (dpid, _), rules in zip(asked, answers, strict=True):
            for rule in rules:
                flow, nodes = paths.get(rule.match, (None, ()))
                if flow is not None and self._served.topology.dpid(nodes[1]) == dpid:
                    octets[flow] = octets.get(flow, 0) + rule.octets
        return [[_parts(flow), octets.get(flow, 0), self._path(nodes)] for flow, nodes in paths.values()]

    async def _port_counts(self) -> list[Any]:
        channels = dict(self._served.channels)
        answers = await asyncio.gather(*(channel.port_counts() for channel in channels.values()))
        rows = []
        for dpid, counts in zip(channels, answers, strict=True):
            switch = self._ports.switch(dpid)
            for each in counts:
                peer = self._names[self._ports.neighbour(switch, each.port)]
                rows.append([self._names[switch], peer, each.tx_octets, each.tx_packets, each.tx_dropped])
        return rows

    def _path(self, nodes: Sequence[int]) -> list[str]:
        return [self._names[node] for node in nodes]


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
        return [FlowCount(_flow(flow), octets, tuple(path)) for flow, octets, path in self._ask(op="flows")]

    def ports(self) -> Sequence[PortCount]:
        return [PortCount(*row) for row in self._ask(op="ports")]

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self._ask(op="set_path", flow=_parts(flow), path=list(path))

    def clear_path(self, flow: FiveTuple) -> None:
        self._ask(op="clear_path", flow=_parts(flow))

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


def _parts(flow: FiveTuple) -> tuple[str, str, int, int, int]:
    return flow.src, flow.dst, flow.proto, flow.sport, flow.dport


def _flow(parts: Sequence[Any]) -> FiveTuple:
    src, dst, proto, sport, dport = parts
    return FiveTuple(str(src), str(dst), int(proto), int(sport), int(dport))
