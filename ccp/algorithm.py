"""The interface of an algorithm: its program, its flows and their reports.

class Mine(Algorithm):
    program = "..."                               # what the datapath measures and when it reports

    def on_create(self, flow: Flow) -> None: ...  # a flow has begun
    def on_report(self, flow: Flow, report: Report) -> None:
        flow.set(cwnd_bytes=...)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ccp.language.instructions import Program

MAX_COMMAND = 2**63 - 1


class Algorithm:
    """A congestion control. One instance serves all flows of a run; `flow.state` holds one flow's state."""

    program: ClassVar[str] = ""
    """In Python's syntax or CCP's Lisp (docs/ccp.md)."""

    real_hosts_only: ClassVar[bool] = False
    """Whether it needs real time, so that simulated hosts cannot use it."""

    def start(self) -> Program | None:
        """Called between real hosts before any flow. A program that it returns replaces `program`."""
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


@dataclass(frozen=True)
class Report:
    """One report. The program's fields are attributes: `report.acked`.

    `t_us` is the time of the report on the sender's clock.
    """

    t_us: int
    values: Mapping[str, int]

    def __getattr__(self, name: str) -> int:
        try:
            return self.values[name]
        except KeyError:
            known = ", ".join(self.values)
            raise AttributeError(f"the program reports no {name}; it reports: {known}") from None


@dataclass
class Command:
    """What the agent sends to the datapath for one flow; None leaves a value as it is."""

    flow: int
    cwnd_bytes: int | None = None
    rate_bps: int | None = None
    controls: dict[str, int] = field(default_factory=dict)
    fall_back: bool = False

    def update(self, later: Command) -> None:
        """Take over what `later` sets."""
        self.cwnd_bytes = self.cwnd_bytes if later.cwnd_bytes is None else later.cwnd_bytes
        self.rate_bps = self.rate_bps if later.rate_bps is None else later.rate_bps
        self.controls.update(later.controls)
        self.fall_back = self.fall_back or later.fall_back


class Flow:
    """A flow, or a subflow of MPTCP, as an algorithm sees it.

    `number` identifies it in this run. `mss` is the payload of a full segment and `cwnd_bytes` the window
    that was last set, both in bytes. `source` and `destination` are addresses. `state` is for the algorithm's
    use.
    """

    def __init__(
        self,
        number: int,
        mss: int,
        cwnd_bytes: int,
        ends: tuple[str, str],
        t_us: int,
        controls: Collection[str] = (),
        touched: dict[int, Flow] | None = None,
    ) -> None:
        self.number = number
        self.mss = mss
        self.cwnd_bytes = cwnd_bytes
        self.source, self.destination = ends
        self._controls = controls
        self.created_us = t_us
        self.state: Any = None
        self._pending = Command(number)
        self._touched = {} if touched is None else touched

    def set(self, *, cwnd_bytes: float | None = None, rate_bps: float | None = None, **controls: int) -> None:
        """Set the window in bytes, the pacing rate in bits per second (0: do not pace), or controls of the
        program.

        The datapath keeps windows from 2 to 2^20 packets. Raises ValueError for a number below 0 or
        above 2^63 - 1, and for a control that the program does not declare.
        """
        self._touched[self.number] = self
        if cwnd_bytes is not None:
            self._pending.cwnd_bytes = self.cwnd_bytes = _number("cwnd_bytes", cwnd_bytes)
        if rate_bps is not None:
            self._pending.rate_bps = _number("rate_bps", rate_bps)
        for name, value in controls.items():
            if name not in self._controls:
                known = ", ".join(self._controls) or "none"
                raise ValueError(f"flow.set({name}=...): the program's controls are: {known}")
            self._pending.controls[name] = _number(name, value)

    def take(self) -> Command | None:
        """Return what was set since the last call, None if nothing was. For agents, not for algorithms."""
        if self._pending == Command(self.number):
            return None
        taken, self._pending = self._pending, Command(self.number)
        return dataclasses.replace(taken)


def _number(name: str, value: float) -> int:
    if not 0 <= value <= MAX_COMMAND:
        raise ValueError(f"{name} of {value}: must be from 0 to 2^63 - 1")
    return int(value)
