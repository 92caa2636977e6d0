"""An agent: hands events of the datapath to an algorithm and returns its commands.

If an algorithm raises for a flow, it loses that flow, which falls back to Reno. The other flows go on. The
traceback of the first such error is kept in the point's provenance.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVarTuple

from ccp.algorithm import Algorithm, Command, Flow, Report

if TYPE_CHECKING:
    from ccp.language.programs import Programs

MAX_TRACEBACK = 4000
Given = TypeVarTuple("Given")


@dataclass(frozen=True, slots=True)
class Created:
    flow: int
    t_us: int
    mss: int
    cwnd_bytes: int
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A report; `program` is the number of the program that made it."""

    flow: int
    t_us: int
    fields: Sequence[int]
    program: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    flow: int


Event = Created | Measured | Closed


class Agent:
    """One algorithm with its flows."""

    def __init__(self, algorithm: Algorithm, programs: Programs) -> None:
        self._algorithm = algorithm
        self._on_report = algorithm.on_report
        self._programs = programs
        self._kinds = [
            (each.fields, name) for each, name in zip(programs.programs, programs.names, strict=True)
        ]
        self._flows: dict[int, Flow] = {}
        self._lost: set[int] = set()
        self._touched: dict[int, Flow] = {}  # flows that the current callback has set
        self.reports = 0
        self.traceback = ""
        """The first error of the algorithm; empty if there was none."""

    @property
    def failed_flows(self) -> int:
        """Flows that the algorithm lost by raising."""
        return len(self._lost)

    def handle(self, event: Event) -> list[Command]:
        """Return the commands that the algorithm gives in answer to one event."""
        if isinstance(event, Measured):
            return self.measured(event.flow, event.t_us, event.fields, event.program)
        if event.flow in self._lost:
            return []
        if isinstance(event, Created):
            ends, programs = (event.source, event.destination), self._programs
            flow = Flow(event.flow, event.mss, event.cwnd_bytes, ends, event.t_us, programs, self._touched)
            self._flows[event.flow] = flow
            return self._call(event.flow, self._algorithm.on_create, flow)
        known = self._flows.pop(event.flow, None)
        return [] if known is None else self._call(event.flow, self._algorithm.on_close, known)

    def measured(self, flow: int, t_us: int, fields: Sequence[int], program: int) -> list[Command]:
        """Return the commands in answer to a report, as `handle` does for `Measured`."""
        known = self._flows.get(flow)
        if known is None or flow in self._lost:
            return []
        self.reports += 1
        names, name = self._kinds[program]
        report = Report(t_us, dict(zip(names, fields)), name)  # noqa: B905 - a keyword would take a tenth longer
        try:  # as in `_call`, which takes a tenth longer
            self._on_report(known, report)
            commands = self._taken()
        except Exception:
            commands = self._lose(flow)
        self._touched.clear()
        return commands

    def poll(self) -> list[Command]:
        """Return the commands that the algorithm gives on its own. If it raises, it loses all flows."""
        try:
            self._algorithm.poll()
            commands = self._taken()
        except Exception:
            self.traceback = self.traceback or traceback.format_exc()[-MAX_TRACEBACK:]
            commands = [Command(number, fall_back=True) for number in self._flows if number not in self._lost]
            self._lost.update(self._flows)
        self._touched.clear()
        return commands

    def _call(self, number: int, callback: Callable[[*Given], None], *given: *Given) -> list[Command]:
        try:
            callback(*given)
            commands = self._taken()
        except Exception:
            commands = self._lose(number)
        self._touched.clear()
        return commands

    def _lose(self, number: int) -> list[Command]:
        """Note the error being handled; the flow falls back."""
        self.traceback = self.traceback or traceback.format_exc()[-MAX_TRACEBACK:]
        self._lost.add(number)
        return [Command(number, fall_back=True)]

    def _taken(self) -> list[Command]:
        commands = []
        for flow in self._touched.values():
            command = flow.take()
            if command is not None:
                commands.append(command)
        return commands
