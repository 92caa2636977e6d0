"""The interface of an algorithm: its program, its flows and their reports.

class Mine(Algorithm):
    program = "..."                               # what the datapath measures and when it reports

    def on_create(self, flow: Flow) -> None: ...  # a flow has begun
    def on_report(self, flow: Flow, report: Report) -> None:
        flow.set(cwnd_bytes=...)

An algorithm may have several `programs`, by name, and change a flow's: flow.set_program("probe").
"""

from __future__ import annotations

import dataclasses
import functools
import keyword
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ccp.names import ONLY

if TYPE_CHECKING:
    from ccp.programs import Programs

MAX_COMMAND = 2**63 - 1
MIN_PACKETS, MAX_PACKETS = 2, 2**20
"""Windows that a datapath keeps (CCP_MIN_PACKETS and CCP_MAX_PACKETS of fabric/ccp/datapath.h). A timeout
leaves one packet."""
MAX_UNDER_WAY = 1000
"""Windows of a flow that no report has shown yet; a datapath may skip some."""


class Algorithm:
    """A congestion control. One instance serves all flows of a run; `flow.state` holds one flow's state."""

    program: ClassVar[str] = ""
    """In Python's syntax or CCP's Lisp (docs/ccp.md)."""

    programs: ClassVar[Mapping[str, str]] = {}
    """Instead of `program`: several, by name. Flows begin with the first."""

    real_hosts_only: ClassVar[bool] = False
    """Whether it needs real time, so that simulated hosts cannot use it."""

    def start(self) -> Programs | None:
        """Called between real hosts before any flow. Programs that it returns replace `program`."""
        return None

    def stop(self) -> None:
        """Called between real hosts at the end."""

    def poll(self) -> None:
        """Called between real hosts about once per millisecond; it may set flows."""

    def on_create(self, flow: Flow) -> None:
        """Act on a flow that has begun."""

    def on_report(self, flow: Flow, report: Report) -> None:
        """Act on a report of `flow`."""
        raise NotImplementedError

    def on_close(self, flow: Flow) -> None:
        """Act on the end of a flow; its window no longer counts."""


@dataclass(slots=True)
class Command:
    """What the agent sends to the datapath for one flow; None leaves a value as it is.

    `program` is a number; `controls` are numbers and values, of which the last for a number holds. A new
    program comes before the controls.
    """

    flow: int
    cwnd_bytes: int | None = None
    rate_bps: int | None = None
    program: int | None = None
    controls: tuple[tuple[int, int], ...] = ()
    fall_back: bool = False

    def update(self, later: Command) -> None:
        """Take over what `later` sets."""
        self.cwnd_bytes = self.cwnd_bytes if later.cwnd_bytes is None else later.cwnd_bytes
        self.rate_bps = self.rate_bps if later.rate_bps is None else later.rate_bps
        if later.program is not None:
            self.program = later.program
            self.controls = ()  # they were the old program's
        self.controls = tuple(dict(self.controls + later.controls).items())
        self.fall_back = self.fall_back or later.fall_back


class Flow:
    """A flow, or a subflow of MPTCP, as an algorithm sees it.

    `number` identifies it in this run. `mss` is the payload of a full segment and `cwnd_bytes` the window in
    force, both in bytes: what was last set, within the datapath's limits, or what the datapath has made of
    it since, by its program or after a timeout. `source` and `destination` are addresses. `program` is the
    name of its program. `state` is for the algorithm's use.
    """

    __slots__ = ("_commands", "_programs", "_reported", "_under_way", "created_us", "cwnd_bytes",
                 "destination", "mss", "number", "program", "source", "state")  # fmt: skip

    def __init__(
        self,
        number: int,
        mss: int,
        cwnd_bytes: int,
        ends: tuple[str, str],
        t_us: int,
        programs: Programs,
        commands: dict[int, Command] | None = None,
    ) -> None:
        """Put what is set into `commands`, which the flows of an agent share, by number."""
        self.number = number
        self.mss = mss
        self.cwnd_bytes = self._reported = cwnd_bytes
        self._under_way: deque[int] = deque(maxlen=MAX_UNDER_WAY)
        self.source, self.destination = ends
        self._programs = programs
        self.program = programs.names[0]
        self.created_us = t_us
        self.state: Any = None
        self._commands = {} if commands is None else commands

    def set(self, *, cwnd_bytes: float | None = None, rate_bps: float | None = None, **controls: int) -> None:
        """Set the window in bytes, the pacing rate in bits per second (0: do not pace), or controls of the
        program.

        The datapath keeps windows from 2 to 2^20 packets. Raises ValueError for a number below 0 or
        above 2^63 - 1, and for a control that the program does not declare.
        """
        if cwnd_bytes is None and rate_bps is None and not controls:
            return
        command = self._command()
        if cwnd_bytes is not None:
            command.cwnd_bytes = wanted = _number("cwnd_bytes", cwnd_bytes)  # the datapath keeps its limits
            in_force = min(max(wanted, MIN_PACKETS * self.mss), MAX_PACKETS * self.mss)
            if in_force != self.cwnd_bytes:
                self._under_way.append(in_force)
            self.cwnd_bytes = in_force
        if rate_bps is not None:
            command.rate_bps = _number("rate_bps", rate_bps)
        if controls:
            self._set_controls(command, controls)

    def window_is(self, cwnd_bytes: int) -> None:
        """Take over the window of a report, unless it was set itself: the window is the datapath's own then.

        Windows that were set later are on their way to the datapath, and stay.
        """
        if cwnd_bytes == self._reported:
            return
        self._reported = cwnd_bytes
        if cwnd_bytes in self._under_way:
            while self._under_way.popleft() != cwnd_bytes:
                pass
            return
        self._under_way.clear()
        self.cwnd_bytes = cwnd_bytes

    def _command(self) -> Command:
        command = self._commands.get(self.number)
        if command is None:
            command = self._commands[self.number] = Command(self.number)
        return command

    def _set_controls(self, command: Command, controls: Mapping[str, int]) -> None:
        known = self._programs[self.program].controls
        for name, value in controls.items():
            if name not in known:
                text = ", ".join(known) or "none"
                raise ValueError(f"flow.set({name}=...): the program's controls are: {text}")
            command.controls += ((known.index(name), _number(name, value)),)

    def set_program(
        self,
        name: str,
        *,
        cwnd_bytes: float | None = None,
        rate_bps: float | None = None,
        **controls: int,
    ) -> None:
        """Let the flow run another program of `programs` from its next acknowledgement on.

        All variables that the program declares get their initial values, also if it runs already, and Micros
        runs from 0; then the controls are set. Window and rate stay unless they are given. What the old
        program had summed up is lost. Raises ValueError for an unknown program, and as `set` does.
        """
        number, command = self._programs.number(name), self._command()
        command.program = number
        command.controls = ()  # they were the old program's
        self.program = name
        self.set(cwnd_bytes=cwnd_bytes, rate_bps=rate_bps, **controls)


def _number(name: str, value: float) -> int:
    if not 0 <= value <= MAX_COMMAND:
        raise ValueError(f"{name} of {value}: must be from 0 to 2^63 - 1")
    return int(value)


class Report:
    """One report. The program's fields are attributes: `report.acked`; all of them are in `values`.

    `t_us` is the time of the report on the sender's clock. `program` is the name of the program that made it,
    which is not the flow's any more if the flow's program was changed while the report was on its way.
    """

    __slots__ = ()
    t_us: int
    program: ClassVar[str] = ONLY
    _attributes: ClassVar[Mapping[str, str]] = {}
    """Where each field is, by its name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...

    @staticmethod
    def of(t_us: int, values: Mapping[str, int], program: str = ONLY) -> Report:
        """Return a report of these fields, as for a test of an algorithm."""
        return report_kind(tuple(values), program)(t_us, *values.values())

    @property
    def values(self) -> Mapping[str, int]:
        return {name: getattr(self, attribute) for name, attribute in self._attributes.items()}

    def __repr__(self) -> str:
        return f"Report({self.t_us}, {self.values}, {self.program!r})"


@functools.cache
def report_kind(names: tuple[str, ...], program: str) -> Callable[..., Report]:
    """Return the class of a program's reports, to be called with the time and the fields in order.

    Instances have slots instead of a dictionary, which takes a third of the time. A field is in `values` only
    if its name is no name in Python, begins with an underscore, or is one of Report's own.
    """
    attributes = {name: name if _is_free(name) else f"_field{i}" for i, name in enumerate(names)}
    body = {"program": program, "_attributes": attributes, "__module__": __name__}
    fields: Sequence[str] = ("t_us", *attributes.values())
    return dataclasses.make_dataclass(
        "Report", fields, bases=(Report,), namespace=body, slots=True, eq=False, repr=False
    )


def _is_free(name: str) -> bool:
    usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    return usable and name != "t_us" and not hasattr(Report, name)
