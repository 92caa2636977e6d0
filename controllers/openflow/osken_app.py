"""The controller as a process: `python -m controllers.openflow.osken_app CONFIG.json`.

os-ken encodes OpenFlow; connections use asyncio in one thread instead of os-ken's application manager. With
the manager's native threads a closed connection blocks its sender forever without a notification, and it does
not report when it listens. `controllers/openflow/__init__.py` defines the process's output and exit codes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from common.errors import RefabricError, UsageError
from controllers.hashing import FiveTuple
from controllers.openflow.config import ControllerConfig, Mode, parse_address, read_config
from controllers.openflow.control import flow_of, parts_of
from controllers.openflow.messages import (
    Confirmed,
    CounterReply,
    Echo,
    Features,
    Hello,
    Message,
    PacketIn,
    PortCounter,
    Ports,
    Refusal,
    Removed,
    Report,
    RuleCount,
)
from controllers.openflow.of13 import (
    HEADER_BYTES,
    OPENFLOW_13,
    OPENFLOW_15,
    Codec,
    message_length,
    version_name,
)
from controllers.openflow.program import EcmpController
from controllers.rules import exactly
from topos.topology import SwitchPorts

UNFIT = 3
BACKLOG = 1024
"""All switches connect at the same time."""
TAKE_OVER_S = 2.0
"""Maximum time for which a switch's old connection may outlive its new one."""
ECHO_S = 2.0
"""Time without a message after which a switch gets an echo request."""
SILENT_S = 10.0
"""Time without a message after which a switch counts as gone."""
ANSWER_S = 5.0
FIRST_QUESTION = 1 << 31
"""First number of requests; barriers are numbered from 1."""

log = logging.getLogger("refabric.controller")


class ControllerError(RefabricError):
    """The controller cannot continue; the message has the reason."""


class SwitchChannel:
    """Reads and writes one connection. `dpid` is -1 until the switch has reported it; `ports` maps port
    numbers to whether their link is up."""

    def __init__(self, codec: Codec, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dpid = -1
        self.ports: dict[int, bool] = {}
        self.closed = asyncio.Event()
        self._heard_s = time.monotonic()
        self._codec = codec
        self._reader, self._writer = reader, writer
        self._numbers = count(FIRST_QUESTION)
        self._answers: dict[int, tuple[asyncio.Future[None], list[RuleCount | PortCounter]]] = {}

    def send(self, message: Message) -> None:
        self._writer.write(self._codec.encode(message))

    async def serve(self, owner: Server) -> None:
        """Serve until the switch disconnects or is silent. Raises ControllerError for an unusable switch."""
        watch = asyncio.create_task(self._watch())
        try:
            await self._greet(owner)
            while (report := await self._next()) is not None:
                self._heed(owner, report)
        except (ConnectionError, asyncio.IncompleteReadError):
            log.info("switch %#x: connection ended", self.dpid)
        except ValueError as error:
            raise ControllerError(f"switch {self.dpid:#x} sent {error}") from error
        finally:
            watch.cancel()
            self.closed.set()
            for answer, _ in self._answers.values():
                answer.cancel()
            self._writer.close()

    async def rule_counts(self) -> list[RuleCount]:
        """Return packets and bytes of every rule. Raises ControllerError after ANSWER_S without an answer."""
        number = next(self._numbers)
        rows = await self._ask(number, self._codec.ask_rule_counts(number))
        return [row for row in rows if isinstance(row, RuleCount)]

    async def port_counts(self) -> list[PortCounter]:
        """Return what every port has sent. Raises ControllerError after ANSWER_S without an answer."""
        number = next(self._numbers)
        rows = await self._ask(number, self._codec.ask_port_counts(number))
        return [row for row in rows if isinstance(row, PortCounter)]

    async def _greet(self, owner: Server) -> None:
        self._writer.write(self._codec.hello())
        hello = await self._next()
        version = self._codec.version
        if not isinstance(hello, Hello) or version not in hello.versions:
            offered = sorted(hello.versions) if isinstance(hello, Hello) else []
            raise ControllerError(
                f"a switch offers OpenFlow {', '.join(map(version_name, offered)) or 'in unknown versions'}, "
                f"but this mode needs {version_name(version)}: ovs-vsctl set bridge NAME "
                f"protocols=OpenFlow{version_name(version).replace('.', '')}"
            )
        self._writer.write(self._codec.ask_features())
        while not isinstance(report := await self._next(), Features):
            if report is None:
                raise ConnectionResetError
        self.dpid = report.dpid
        await owner.identified(self, report.dpid)
        self._writer.write(self._codec.ask_ports())

    async def _next(self) -> Report | None:
        """Return the next relevant report; None if the switch has disconnected."""
        while True:
            try:
                header = await self._reader.readexactly(HEADER_BYTES)
            except asyncio.IncompleteReadError:
                return None
            body = await self._reader.readexactly(message_length(header) - HEADER_BYTES)
            self._heard_s = time.monotonic()
            report = self._codec.decode(header + body)
            if isinstance(report, Echo):
                if report.asked:
                    self._writer.write(self._codec.answer(report))
            elif report is not None:
                return report

    async def _watch(self) -> None:
        """Send echo requests to a silent switch, and disconnect it if it does not answer."""
        while (silent_s := time.monotonic() - self._heard_s) < SILENT_S:
            if silent_s >= ECHO_S:
                self._writer.write(self._codec.echo(0))
            await asyncio.sleep(ECHO_S)
        log.warning("switch %#x sent nothing for %g s", self.dpid, SILENT_S)
        self._writer.transport.abort()

    def _heed(self, owner: Server, report: Report) -> None:
        if isinstance(report, Ports):
            self.ports.update(report.up)
            if report.last:
                owner.ports_changed(self)
        elif isinstance(report, CounterReply):
            self._answered(report)
        elif isinstance(report, Refusal) and report.number in self._answers:
            answer = self._answers[report.number][0]
            if not answer.done():  # a switch may refuse the same request twice
                answer.set_exception(
                    ControllerError(f"switch {self.dpid:#x} rejects requests for counters: {report.what}")
                )
        else:
            owner.reported(self, report)

    def _answered(self, report: CounterReply) -> None:
        if report.number not in self._answers:
            return
        answer, rows = self._answers[report.number]
        rows += report.rows
        if report.last and not answer.done():
            answer.set_result(None)

    async def _ask(self, number: int, question: bytes) -> list[RuleCount | PortCounter]:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        rows: list[RuleCount | PortCounter] = []
        self._answers[number] = answer, rows
        self._writer.write(question)
        try:
            await asyncio.wait_for(answer, ANSWER_S)
        except (TimeoutError, asyncio.CancelledError) as error:
            raise ControllerError(f"switch {self.dpid:#x} did not answer a request for counters") from error
        finally:
            del self._answers[number]
        return rows


class ControlServer:
    """Answers requests one at a time on each connection."""

    def __init__(self, served: Server) -> None:
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
                controller.set_path(flow_of(request["flow"]), nodes)
                return None
            case "clear_path":
                controller.clear_path(flow_of(request["flow"]))
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
        return [[parts_of(flow), octets.get(flow, 0), self._path(nodes)] for flow, nodes in paths.values()]

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


class Server:
    """Manages the connections and passes events between them and the EcmpController."""

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self.topology = config.build()
        self._ports = SwitchPorts(self.topology)
        self._codec = Codec(OPENFLOW_15 if config.mode is Mode.PROACTIVE else OPENFLOW_13)
        self.channels: dict[int, SwitchChannel] = {}
        self.controller = EcmpController(
            self.topology,
            config.routing,
            config.seed,
            config.mode,
            self._send,
            on_programmed=self._programmed,
        )
        self._ready_s = 0.0
        self._all_there = asyncio.Event()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve until SIGTERM. Raises ControllerError for the errors listed in the contract."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._end)
        listener = await self._listen()
        control = ControlServer(self)
        if self._config.control:
            await control.start(Path(self._config.control))
        self._ready_s = time.monotonic()
        _say(event="ready", listen=self._config.listen)
        try:
            waiting = asyncio.create_task(self._expect_all())
            await self._over
        finally:
            waiting.cancel()
            control.stop()
            listener.close()

    async def _listen(self) -> asyncio.AbstractServer:
        address = parse_address(self._config.listen)
        try:
            if isinstance(address, Path):
                return await asyncio.start_unix_server(self._accept, address, backlog=BACKLOG)
            return await asyncio.start_server(self._accept, *address, backlog=BACKLOG)
        except OSError as error:
            raise ControllerError(f"cannot listen on {self._config.listen}: {error}") from error

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = SwitchChannel(self._codec, reader, writer)
        try:
            await channel.serve(self)
        except ControllerError as error:
            self._fail(error)
        except Exception as error:  # a bug, which asyncio would only log
            if not self._over.done():
                self._over.set_exception(error)
        finally:
            if self.channels.get(channel.dpid) is channel:
                del self.channels[channel.dpid]
                self.controller.switch_gone(channel.dpid)

    async def _expect_all(self) -> None:
        try:
            await asyncio.wait_for(self._all_there.wait(), self._config.connect_s)
        except TimeoutError:
            absent = [s for s in self.topology.switches if self.topology.dpid(s) not in self.channels]
            short = {
                s: self._missing(c)
                for s in self.topology.switches
                if (c := self.channels.get(self.topology.dpid(s)))
            }
            parts = [f"{self._name(s)} lacks port {', '.join(map(str, m))}" for s, m in short.items() if m]
            if absent:
                parts.append(f"{len(absent)} did not connect, the first of them {self._name(absent[0])}")
            why = "; ".join(parts) or "some did not confirm their rules"
            self._fail(
                ControllerError(f"not all switches are ready after {self._config.connect_s:g} s: {why}")
            )

    # Events of a SwitchChannel.

    async def identified(self, channel: SwitchChannel, dpid: int) -> None:
        try:
            switch = self._ports.switch(dpid)
        except UsageError as error:
            raise ControllerError(str(error)) from error
        if old := self.channels.get(dpid):
            try:
                await asyncio.wait_for(old.closed.wait(), TAKE_OVER_S)
            except TimeoutError:
                raise ControllerError(
                    f"two switches connected with the datapath id {dpid:#x} of {self._name(switch)}"
                ) from None
        self.channels[dpid] = channel

    def ports_changed(self, channel: SwitchChannel) -> None:
        switch = self._ports.switch(channel.dpid)
        if extra := sorted(set(channel.ports) - set(range(1, len(self._ports.links[switch]) + 1))):
            wanted = len(self._ports.links[switch])
            raise ControllerError(
                f"switch {self._name(switch)} has a port {extra[0]}, but only {wanted} links"
            )
        if self._missing(channel):
            return
        if not self.controller.knows(channel.dpid):
            log.info("switch %s connected", self._name(switch))
            self.controller.switch_connected(channel.dpid)
        for port, up in channel.ports.items():
            self.controller.port_changed(channel.dpid, port, up)

    def reported(self, channel: SwitchChannel, report: Report) -> None:
        if not self.controller.knows(channel.dpid):
            return
        match report:
            case PacketIn(port, frame):
                self.controller.packet_in(channel.dpid, port, frame)
            case Confirmed(number):
                self.controller.barrier_reply(channel.dpid, number)
            case Removed(match, priority):
                self.controller.flow_removed(match, priority)
            case Refusal(_, what):
                name = self._name(self._ports.switch(channel.dpid))
                group = "GROUP_MOD" in what
                hint = "; mode proactive needs groups that specify their hash: choose hybrid" if group else ""
                raise ControllerError(f"switch {name} rejected a message: {what}{hint}")

    def _send(self, dpid: int, message: Message) -> None:
        self.channels[dpid].send(message)

    def _programmed(self) -> None:
        self._all_there.set()
        seconds = round(time.monotonic() - self._ready_s, 3)
        _say(event="programmed", switches=len(self.topology.switches), seconds=seconds)

    def _missing(self, channel: SwitchChannel) -> list[int]:
        wanted = range(1, len(self._ports.links[self._ports.switch(channel.dpid)]) + 1)
        return [port for port in wanted if port not in channel.ports]

    def _name(self, switch: int) -> str:
        return self.topology.nodes[switch].name

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _fail(self, error: ControllerError) -> None:
        log.error("%s", error)
        if not self._over.done():
            self._over.set_exception(error)


def _say(**event: object) -> None:
    print(json.dumps(event), flush=True)


async def _serve(config: ControllerConfig) -> None:
    await Server(config).run()


def main(arguments: list[str]) -> int:
    """Run the controller. Exit code: 0 after SIGTERM, 2 for an invalid configuration, else 3."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    if len(arguments) != 1:
        print("usage: python -m controllers.openflow.osken_app CONFIG.json", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(read_config(Path(arguments[0]))))
    except RefabricError as error:
        print(f"controller: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else UNFIT
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OSKEN_HUB_TYPE", "native")
    sys.exit(main(sys.argv[1:]))
