"""The interface between an agent's process and a datapath in this machine's kernel or a guest's."""

from __future__ import annotations

import ipaddress
import struct
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from ccp.agent import Closed, Created, Event, Measured
from ccp.algorithm import Command
from ccp.language.programs import Programs

FIELDS = 16
"""Values in a report; as many controls."""
NS_PER_US = 1000
BITS = 8
EVENT = struct.Struct(f"<4I4s4s2Q{FIELDS}Q")
"""struct ccp_event (engines/emulation/congestion/bpf/ccp_flow.h)."""
_CREATED, _MEASURED = 0, 1
_BEAT = struct.Struct("<2Q")
Answer = Callable[[Event], Iterable[Command]]


class Channel(Protocol):
    """The way from the datapath to its agent and back. Used in the agent's process alone."""

    @property
    def descriptors(self) -> Iterable[int]:
        """What the agent's process needs of the run's open files."""

    def open(self, programs: Programs, answer: Answer) -> None:
        """Give the datapath its programs; from now on, events are kept until `wait` reads them."""

    def wait(self) -> None:
        """Pass pending events to `answer`, and its commands to the datapath. Returns after a few ms at the
        latest if there are none. Raises what `answer` raises."""

    def beat(self) -> None:
        """Send the datapath a heartbeat."""

    def give(self, command: Command) -> None:
        """Pass on a command that answers no event."""

    def delays_us(self) -> tuple[float, float, float]:
        """Return the times from events to their commands: median, 95th and 99th percentile."""

    def close(self) -> None: ...


def decoded(data: bytes) -> tuple[Event, int]:
    """Decode the bytes of an EVENT: return the event and its time in ns."""
    kind, flow, mss, program, source, destination, at_ns, window, *fields = EVENT.unpack(data)
    at_us = at_ns // NS_PER_US
    if kind == _CREATED:
        ends = (str(ipaddress.IPv4Address(end)) for end in (source, destination))
        return Created(flow, at_us, mss, window, *ends), at_ns
    return (Measured(flow, at_us, fields, program) if kind == _MEASURED else Closed(flow)), at_ns


def beat_of(report_us: int) -> bytes:
    """Return a heartbeat of this instant, with the time between reports (0: one round trip)."""
    return _BEAT.pack(time.monotonic_ns(), report_us)


def percentiles_us(delays_ns: Iterable[int]) -> tuple[float, float, float]:
    """Return median, 95th and 99th percentile, in us; zeros for no delays."""
    ordered = sorted(delays_ns)
    at = [ordered[int(len(ordered) * share)] / 1000 if ordered else 0.0 for share in (0.5, 0.95, 0.99)]
    return at[0], at[1], at[2]
