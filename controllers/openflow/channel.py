"""One switch's connection: handshake, whole messages, questions with their answers, and whether it is
alive."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import count
from typing import Protocol

from common.errors import RefabricError
from controllers.openflow.messages import Message
from controllers.openflow.of13 import HEADER_BYTES, Codec, message_length, version_name
from controllers.openflow.reports import (
    Echo,
    Features,
    Hello,
    PortChanged,
    PortCount,
    PortCounts,
    Ports,
    Refusal,
    Report,
    RuleCount,
    RuleCounts,
)

ECHO_S = 2.0
"""A switch that says nothing for so long is asked whether it is there."""
SILENT_S = 10.0
"""One that says nothing for so long is gone."""
ANSWER_S = 5.0
FIRST_QUESTION = 1 << 31
"""Questions are numbered from here, barriers from 1."""

log = logging.getLogger("refabric.controller")


class ControllerError(RefabricError):
    """The controller cannot do its work; the message says why."""


class Owner(Protocol):
    """Who is told of a connection's switch."""

    async def identified(self, channel: Channel, dpid: int) -> None: ...
    def ports_changed(self, channel: Channel) -> None: ...
    def reported(self, channel: Channel, report: Report) -> None: ...


class Channel:
    """Reads and writes one connection. `dpid` is -1 until the switch has told it; `ports` maps the numbers of
    its ports to whether their link is up."""

    def __init__(self, codec: Codec, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dpid = -1
        self.ports: dict[int, bool] = {}
        self.closed = asyncio.Event()
        self._heard_s = time.monotonic()
        self._codec = codec
        self._reader, self._writer = reader, writer
        self._numbers = count(FIRST_QUESTION)
        self._answers: dict[int, tuple[asyncio.Future[None], list[RuleCount | PortCount]]] = {}

    def tell(self, message: Message) -> None:
        self._writer.write(self._codec.encode(message))

    async def serve(self, owner: Owner) -> None:
        """Until the switch hangs up or falls silent. Raises ControllerError for one that cannot be used."""
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
        """Packets and bytes of every rule. Raises ControllerError without an answer in ANSWER_S seconds."""
        number = next(self._numbers)
        rows = await self._ask(number, self._codec.ask_rule_counts(number))
        return [row for row in rows if isinstance(row, RuleCount)]

    async def port_counts(self) -> list[PortCount]:
        """What every port has sent. Raises ControllerError without an answer in ANSWER_S seconds."""
        number = next(self._numbers)
        rows = await self._ask(number, self._codec.ask_port_counts(number))
        return [row for row in rows if isinstance(row, PortCount)]

    async def _greet(self, owner: Owner) -> None:
        self._writer.write(self._codec.hello())
        hello = await self._next()
        version = self._codec.version
        if not isinstance(hello, Hello) or version not in hello.versions:
            spoken = sorted(hello.versions) if isinstance(hello, Hello) else []
            raise ControllerError(
                f"a switch speaks OpenFlow {', '.join(map(version_name, spoken)) or 'in no way known'}, and "
                f"this mode needs {version_name(version)}: ovs-vsctl set bridge NAME "
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
        """The next report worth heeding. None when the switch has hung up."""
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
        """Asks a silent switch whether it is there, and hangs up on one that does not answer."""
        while (silent_s := time.monotonic() - self._heard_s) < SILENT_S:
            if silent_s >= ECHO_S:
                self._writer.write(self._codec.echo(0))
            await asyncio.sleep(ECHO_S)
        log.warning("switch %#x said nothing for %g s", self.dpid, SILENT_S)
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
            error = ControllerError(f"switch {self.dpid:#x} does not tell its counters: {report.what}")
            self._answers[report.number][0].set_exception(error)
        else:
            owner.reported(self, report)

    def _answered(self, report: RuleCounts | PortCounts) -> None:
        if report.number not in self._answers:
            return
        answer, rows = self._answers[report.number]
        rows += report.rules if isinstance(report, RuleCounts) else report.ports
        if report.last and not answer.done():
            answer.set_result(None)

    async def _ask(self, number: int, question: bytes) -> list[RuleCount | PortCount]:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        rows: list[RuleCount | PortCount] = []
        self._answers[number] = answer, rows
        self._writer.write(question)
        try:
            await asyncio.wait_for(answer, ANSWER_S)
        except (TimeoutError, asyncio.CancelledError) as error:
            raise ControllerError(f"switch {self.dpid:#x} did not tell its counters") from error
        finally:
            del self._answers[number]
        return rows
