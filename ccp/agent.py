"""An agent: hands events of the datapath to an algorithm and returns its commands.

If an algorithm raises for a flow, it loses that flow, which falls back to Reno. The other flows go on. The
traceback of the first such error is kept in the point's provenance.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVarTuple

from ccp.algorithm import Algorithm, Command, Flow, Report, report_kind

if TYPE_CHECKING:
    from ccp.programs import Programs

MAX_TRACEBACK = 4000
Given = TypeVarTuple("Given")


@dataclass(frozen=True, slots=True)
class FlowCreated:
    flow: int
    t_us: int
    mss: int
    cwnd_bytes: int
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class FlowReport:
    """A report; `program` is the number of the program that made it. Further `fields` mean nothing.

    `cwnd_bytes` is the datapath's window at that time; None: it is not known.
    """

    flow: int
    t_us: int
    fields: Sequence[int]
    program: int = 0
    cwnd_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class FlowClosed:
    flow: int


Event = FlowCreated | FlowReport | FlowClosed


class Agent:
    """One algorithm with its flows."""

    def __init__(self, algorithm: Algorithm, programs: Programs) -> None:
        self._algorithm = algorithm
        self._on_report = algorithm.on_report
        self._programs = programs
        self._kinds = [
            report_kind(each.fields, name)
            for each, name in zip(programs.programs, programs.names, strict=True)
        ]
        self._flows: dict[int, Flow] = {}
        self._lost: set[int] = set()
        self._commands: dict[int, Command] = {}  # what the current callback sets, by flow
        self.reports = 0
        self.traceback = ""
        """The first error of the algorithm; empty if there was none."""

    @property
    def failed_flows(self) -> int:
        """Flows that the algorithm lost by raising."""
        return len(self._lost)

    def handle(self, event: Event) -> list[Command]:
        """Return the commands that the algorithm gives in answer to one event."""
        if isinstance(event, FlowReport):
            fields = event.fields[: len(self._programs.programs[event.program].fields)]
            return self.measured(event.flow, event.t_us, fields, event.program, event.cwnd_bytes)
        if isinstance(event, FlowCreated):
            ends, programs = (event.source, event.destination), self._programs
            flow = Flow(event.flow, event.mss, event.cwnd_bytes, ends, event.t_us, programs, self._commands)
            self._flows[event.flow] = flow
            return self._call(event.flow, self._algorithm.on_create, flow)
        known = self._flows.pop(event.flow, None)
        return [] if known is None else self._call(event.flow, self._algorithm.on_close, known)

    def measured(
        self, flow: int, t_us: int, fields: Sequence[int], program: int, cwnd_bytes: int | None = None
    ) -> list[Command]:
        """Return the commands in answer to a report, as `handle` does for a FlowReport; `fields` are all of
        the program's."""
        known = self._flows.get(flow)
        if known is None:
            return []
        self.reports += 1
        if cwnd_bytes is not None:
            known.window_is(cwnd_bytes)
        report = self._kinds[program](t_us, *fields)
        try:  # as in `_call`, which takes a tenth longer
            self._on_report(known, report)
        except Exception:
            self._lose(flow)
        return self._taken()

    def poll(self) -> list[Command]:
        """Return the commands that the algorithm gives on its own. If it raises, it loses all flows."""
        try:
            self._algorithm.poll()
        except Exception:
            for number in list(self._flows):
                self._lose(number)
        return self._taken()

    def _call(self, number: int, callback: Callable[[*Given], None], *given: *Given) -> list[Command]:
        try:
            callback(*given)
        except Exception:
            self._lose(number)
        return self._taken()

    def _lose(self, number: int) -> None:
        """Note the error being handled; the flow falls back, and what was set for it is void."""
        self.traceback = self.traceback or _error_text()[-MAX_TRACEBACK:]
        self._lost.add(number)
        self._flows.pop(number, None)
        self._commands[number] = Command(number, fall_back=True)

    def _taken(self) -> list[Command]:
        taken = list(self._commands.values())
        self._commands.clear()
        return taken


def _error_text() -> str:
    error = sys.exception()
    if isinstance(error, AttributeError) and isinstance(error.obj, Report):
        known = ", ".join(error.obj.values)
        error.add_note(f"the program reports no {error.name}; it reports: {known}")
    return traceback.format_exc()
