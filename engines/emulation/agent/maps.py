"""The datapath's BPF maps as an agent uses them. Layouts: engines/emulation/congestion/bpf/ccp.bpf.c."""

from __future__ import annotations

import ctypes
import mmap
import struct
import time
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import NamedTuple

from ccp.agent import Closed, Event
from ccp.algorithm import Command
from ccp.language.programs import Programs
from engines.emulation.agent.channel import BITS, EVENT, FIELDS, Answer, decoded, percentiles_us
from engines.emulation.congestion.libbpf import library

POLL_MS = 1
"""Longest wait of a report that is not urgent; waking a process adds 30 to 40 us to the ACK."""
KEPT_DELAYS = 100_000
_COMMAND = struct.Struct(f"<2Q2I4I{FIELDS}I{FIELDS}Q")
"""struct command."""
_SAMPLE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


def update(fd: int, key: int, value: bytes) -> None:
    """Set an element of a map. Raises LibbpfError."""
    element = c_uint32(key)
    library().number(
        "writing a map of the datapath", "bpf_map_update_elem", fd, ctypes.byref(element), value, 0
    )


class Descriptors(NamedTuple):
    """File descriptors of the datapath's maps."""

    events: int
    commands: int
    programs: int


class Shared:
    """`struct control`, in memory that this process shares with the datapath and with its children."""

    def __init__(self, fd: int, report_us: int) -> None:
        """Map it; set the time between reports (0: one round trip). Raises OSError."""
        # Each assignment to one of these numbers is one store, so that the datapath reads none in part.
        self._numbers = (c_uint64 * 3).from_buffer(mmap.mmap(fd, mmap.PAGESIZE))
        self._numbers[1] = report_us

    def beat(self) -> None:
        """Send the datapath a heartbeat. It also looks for commands."""
        self._numbers[0] = time.monotonic_ns()
        self.announce()

    def announce(self) -> None:
        """Let the datapath look for commands."""
        self._numbers[2] += 1


class Events:
    """The ring buffer of events; `on_event` is called with each, and the time of the datapath's event."""

    def __init__(self, fd: int, on_event: Callable[[Event, int], None]) -> None:
        self._on_event = on_event
        self._error: BaseException | None = None
        self._called = _SAMPLE(self._hear)  # libbpf calls it as long as this object lives
        self._ring = library().pointer(
            "opening the datapath's events", "ring_buffer__new", fd, self._called, None, None
        )

    def close(self) -> None:
        library().call("ring_buffer__free", self._ring)

    def wait(self, milliseconds: int) -> None:
        """Handle pending events; wait for them at most this long. Raises what `on_event` raises."""
        library().call("ring_buffer__poll", self._ring, milliseconds)
        library().call("ring_buffer__consume", self._ring)
        if self._error is not None:
            raise self._error

    def _hear(self, _context: int, data: int, size: int) -> int:
        try:
            event, at_ns = decoded(ctypes.string_at(data, min(size, EVENT.size)))
            self._on_event(event, at_ns)
        except BaseException as error:  # ctypes would print and forget it
            self._error = error
            return -1
        return 0


def install(fd: int, programs: Programs) -> None:
    """Write the datapath's table of programs. Raises LibbpfError."""
    for number, program in enumerate(programs.programs):
        update(fd, number, program.packed())


@dataclass
class _Given:
    """What was ever set for a flow, and how often each part was."""

    command: Command
    window: int = 0
    rate: int = 0
    program: int = 0
    any_control: int = 0
    controls: list[int] = field(default_factory=lambda: [0] * FIELDS)

    def add(self, command: Command) -> None:
        self.window += command.cwnd_bytes is not None
        self.rate += command.rate_bps is not None
        self.any_control += bool(command.controls)
        if command.program is not None:
            self.program += 1
            self.controls = [0] * FIELDS
        for number, _ in command.controls:
            self.controls[number] += 1
        self.command.update(command)

    def packed(self) -> bytes:
        of, controls = self.command, dict(self.command.controls)
        return _COMMAND.pack(
            *(of.cwnd_bytes or 0, (of.rate_bps or 0) // BITS, of.program or 0, of.fall_back),
            *(self.window, self.rate, self.program, self.any_control, *self.controls),
            *(controls.get(number, 0) for number in range(FIELDS)),
        )


class Commands:
    """The map of commands. It holds all that was ever set for a flow, so that none is lost between ACKs."""

    def __init__(self, fd: int, shared: Shared) -> None:
        self._fd, self._shared = fd, shared
        self._given: dict[int, _Given] = {}

    def give(self, command: Command) -> None:
        """Store the command; the datapath carries it out at the flow's next ACK or attempt to send."""
        given = self._given.setdefault(command.flow, _Given(Command(command.flow)))
        given.add(command)
        update(self._fd, command.flow, given.packed())
        self._shared.announce()

    def forget(self, flow: int) -> None:
        """Drop the entries of a closed flow."""
        self._given.pop(flow, None)


class MapChannel:
    """A Channel (channel.py) to a datapath in BPF."""

    def __init__(self, maps: Descriptors, shared: Shared) -> None:
        self._maps, self._shared = maps, shared
        self._delays_ns: list[int] = []

    @property
    def descriptors(self) -> tuple[int, ...]:
        """See Channel."""
        return self._maps

    def open(self, programs: Programs, answer: Answer) -> None:
        """See Channel. Raises LibbpfError."""
        install(self._maps.programs, programs)
        self._answer = answer
        self._commands = Commands(self._maps.commands, self._shared)
        self._events = Events(self._maps.events, self._on_event)

    def wait(self) -> None:
        """See Channel."""
        self._events.wait(POLL_MS)

    def beat(self) -> None:
        """See Channel."""
        self._shared.beat()

    def give(self, command: Command) -> None:
        """See Channel."""
        self._commands.give(command)

    def delays_us(self) -> tuple[float, float, float]:
        """See Channel."""
        return percentiles_us(self._delays_ns)

    def close(self) -> None:
        """See Channel."""
        self._events.close()

    def _on_event(self, event: Event, at_ns: int) -> None:
        for command in self._answer(event):
            self._commands.give(command)
        if isinstance(event, Closed):
            self._commands.forget(event.flow)
        elif len(self._delays_ns) < KEPT_DELAYS:
            self._delays_ns.append(time.monotonic_ns() - at_ns)
