"""One switch's connection: handshake, complete messages, requests with answers, and a liveness check."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import count
from typing import Protocol

from common.errors import RefabricError
from controllers.openflow.messages import (
    Echo,
    Features,
    Hello,
    Message,
    PortChanged,
    PortCounter,
    PortCounts,
    Ports,
    Refusal,
    Report,
    RuleCount,
    RuleCounts,
)
from controllers.openflow.of13 import HEADER_BYTES, Codec, message_length, version_name

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


class Owner(Protocol):
    """The receiver of a connection's events."""

    async def identified(self, channel: SwitchChannel, dpid: int) -> None: ...
    def ports_changed(self, channel: SwitchChannel) -> None: ...
    def reported(self, channel: SwitchChannel, report: Report) -> None: ...


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

    async def serve(self, owner: Owner) -> None:
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

    async def _greet(self, owner: Owner) -> None:
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

    def _heed(self, owner: Owner, report: Report) -> None:
        if isinstance(report, Ports):
            self.ports.update({port.number: port.up for port in report.ports})
            if report.last:
                owner.ports_changed(self)
        elif isinstance(report, PortChanged):
            self.ports[report.port.number] = report.port.up and not report.deleted
            owner.ports_changed(self)
        elif isinstance(report, RuleCounts | PortCounts):
            self._answered(report)
        elif isinstance(report, Refusal) and report.number in self._answers:
            answer = self._answers[report.number][0]
            if not answer.done():  # a switch may refuse the same request twice
                answer.set_exception(
                    ControllerError(f"switch {self.dpid:#x} rejects requests for counters: {report.what}")
                )
        else:
            owner.reported(self, report)

    def _answered(self, report: RuleCounts | PortCounts) -> None:
        if report.number not in self._answers:
            return
        answer, rows = self._answers[report.number]
        rows += report.rules if isinstance(report, RuleCounts) else report.ports
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
