"""The datapath's BPF maps as an agent uses them. Layouts: engines/emulation/congestion/bpf/ccp.bpf.c."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass

from ccp.agent import Closed, Event
from ccp.algorithm import Command
from ccp.language.instructions import Program
from engines.emulation.agent.channel import BITS, EVENT, FIELDS, Answer, beat_of, decoded, percentiles_us
from engines.emulation.congestion.libbpf import library

POLL_MS = 1
"""Longest wait of a report that is not urgent; waking a process adds 30 to 40 us to the ACK."""
KEPT_DELAYS = 100_000
_COMMAND = struct.Struct(f"<2Q4I{FIELDS}Q")
_SAMPLE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


def update(fd: int, key: int, value: bytes) -> None:
    """Set an element of a map. Raises LibbpfError."""
    element = c_uint32(key)
    library().number(
        "writing a map of the datapath", "bpf_map_update_elem", fd, ctypes.byref(element), value, 0
    )


@dataclass(frozen=True)
class Descriptors:
    """File descriptors of the datapath's maps."""

    events: int
    commands: int
    control: int
    program: int


class Beat:
    """Sends heartbeats to the datapath, with the time between reports (0: one round trip)."""

    def __init__(self, fd: int, report_us: int) -> None:
        self._fd = fd
        self._report_us = report_us

    def __call__(self) -> None:
        update(self._fd, 0, beat_of(self._report_us))


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


class Commands:
    """The map of commands. It holds all that was ever set for a flow, so that none is lost between ACKs."""

    def __init__(self, fd: int, controls: tuple[str, ...]) -> None:
        self._fd = fd
        self._names = controls
        self._set: dict[int, Command] = {}
        self._numbers: dict[int, list[int]] = {}

    def give(self, command: Command) -> None:
        """Store the command; the datapath carries it out at the flow's next ACK or attempt to send."""
        known = self._set.setdefault(command.flow, Command(command.flow))
        numbers = self._numbers.setdefault(command.flow, [0, 0, 0])
        numbers[0] += command.cwnd_bytes is not None
        numbers[1] += command.rate_bps is not None
        numbers[2] += bool(command.controls)
        known.update(command)
        controls = [known.controls.get(name, 0) for name in self._names]
        controls += [0] * (FIELDS - len(controls))
        packed = _COMMAND.pack(
            known.cwnd_bytes or 0, (known.rate_bps or 0) // BITS, *numbers, known.fall_back, *controls
        )
        update(self._fd, command.flow, packed)

    def forget(self, flow: int) -> None:
        """Drop the entries of a closed flow."""
        self._set.pop(flow, None)
        self._numbers.pop(flow, None)


class MapChannel:
    """A Channel (channel.py) to a datapath in BPF."""

    def __init__(self, maps: Descriptors, report_us: int) -> None:
        self._maps = maps
        self._beat = Beat(maps.control, report_us)
        self._delays_ns: list[int] = []

    def open(self, program: Program, answer: Answer) -> None:
        """See Channel. Raises LibbpfError."""
        update(self._maps.program, 0, program.packed())
        self._answer = answer
        self._commands = Commands(self._maps.commands, program.controls)
        self._events = Events(self._maps.events, self._on_event)

    def wait(self) -> None:
        """See Channel."""
        self._events.wait(POLL_MS)

    def beat(self) -> None:
        """See Channel."""
        self._beat()

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
