"""The interface between an agent's process and a datapath in this machine's kernel or a guest's.

MapChannel uses the datapath's BPF maps (layouts: bpf/ccp.bpf.c). FileChannel uses the datapath that is built
into the guests' kernel, through files in /proc/refabric/ccp (engines/linux/kernel/congestion/ccp_agent.c). An
agent's work takes no virtual time there: the kernel carries out a command at the time of its event plus the
delay that the run asks for, as the simulator does.
"""

from __future__ import annotations

import ctypes
import ipaddress
import mmap
import os
import random
import select
import struct
import time
from collections.abc import Callable, Iterable
from ctypes import c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from ccp.agent import Event, FlowClosed, FlowCreated, FlowReport
from ccp.algorithm import Command
from ccp.programs import Programs
from common.errors import HostUnfitError
from engines.emulation.congestion.libbpf import library
from engines.emulation.congestion.registration import FOLDER as PROC

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
        return FlowCreated(flow, at_us, mss, window, *ends), at_ns
    return (FlowReport(flow, at_us, fields, program) if kind == _MEASURED else FlowClosed(flow)), at_ns


def beat_of(report_us: int) -> bytes:
    """Return a heartbeat of this instant, with the time between reports (0: one round trip)."""
    return _BEAT.pack(time.monotonic_ns(), report_us)


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


class ControlPage:
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


@dataclass
class FlowCommands:
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


class MapChannel:
    """A Channel to a datapath in BPF: a ring buffer of events, a map of commands, a table of programs.

    The map holds all that was ever set for a flow, so that none is lost between ACKs. The datapath carries
    out a command at the flow's next ACK or attempt to send.
    """

    def __init__(self, events: int, commands: int, programs: int, control: ControlPage) -> None:
        """The first three are file descriptors of the datapath's maps."""
        self.descriptors = (events, commands, programs)
        self._control = control
        self._sent: dict[int, FlowCommands] = {}
        self._delays_ns: list[int] = []
        self._error: BaseException | None = None

    def open(self, programs: Programs, answer: Answer) -> None:
        """See Channel. Raises LibbpfError."""
        events, self._commands_fd, table = self.descriptors
        for number, program in enumerate(programs.programs):
            update(table, number, program.packed())
        self._answer = answer
        self._called = _SAMPLE(self._hear)  # libbpf calls it as long as this object lives
        self._ring = library().pointer(
            "opening the datapath's events", "ring_buffer__new", events, self._called, None, None
        )

    def wait(self) -> None:
        """See Channel."""
        library().call("ring_buffer__poll", self._ring, POLL_MS)
        library().call("ring_buffer__consume", self._ring)
        if self._error is not None:
            raise self._error

    def beat(self) -> None:
        """See Channel."""
        self._control.beat()

    def give(self, command: Command) -> None:
        """See Channel."""
        commands = self._sent.setdefault(command.flow, FlowCommands(Command(command.flow)))
        commands.add(command)
        update(self._commands_fd, command.flow, commands.packed())
        self._control.announce()

    def delays_us(self) -> tuple[float, float, float]:
        """See Channel."""
        ordered = sorted(self._delays_ns)
        at = [ordered[int(len(ordered) * share)] / 1000 if ordered else 0.0 for share in (0.5, 0.95, 0.99)]
        return at[0], at[1], at[2]

    def close(self) -> None:
        """See Channel."""
        library().call("ring_buffer__free", self._ring)

    def _hear(self, _context: int, data: int, size: int) -> int:
        try:
            event, at_ns = decoded(ctypes.string_at(data, min(size, EVENT.size)))
            for command in self._answer(event):
                self.give(command)
            if isinstance(event, FlowClosed):
                self._sent.pop(event.flow, None)
            elif len(self._delays_ns) < KEPT_DELAYS:
                self._delays_ns.append(time.monotonic_ns() - at_ns)
        except BaseException as error:  # ctypes would print and forget it
            self._error = error
            return -1
        return 0


FOLDER = PROC / "ccp"
WAIT_MS = 25
"""Well below the 200 ms without a heartbeat after which the datapath considers the agent dead."""
SETS_WINDOW, SETS_RATE, FALLS_BACK, SETS_PROGRAM = 1, 2, 4, 8
MAX_EVENTS = 256
_FILE_COMMAND = struct.Struct(f"<Q2I2Q2I{FIELDS}Q")
"""struct refabric_command (engines/linux/kernel/congestion/ccp.h)."""


class BuiltInActivity(NamedTuple):
    """What the datapath did since boot, in the order of its file."""

    folded: int
    reports: int
    unreported: int
    commands: int
    errors: int
    fallbacks: int
    late_commands: int
    most_late_ns: int


def activity() -> BuiltInActivity:
    """Return what the datapath did. Raises HostUnfitError if this kernel has none."""
    try:
        text = (FOLDER / "activity").read_text()
    except OSError as error:
        raise HostUnfitError(
            f"reading the agent's datapath in {FOLDER}: {error.strerror}; run: refabric kernel build"
        ) from error
    return BuiltInActivity(*map(int, text.split()))


class Delays:
    """When commands take effect: `delay_us` after their event and up to `jitter_us` more, in order."""

    def __init__(self, delay_us: float, jitter_us: float, seed: int) -> None:
        self._delay_ns, self._jitter_ns = round(delay_us * NS_PER_US), round(jitter_us * NS_PER_US)
        self._random = random.Random(seed)
        self._latest_ns = 0

    def due_ns(self, at_ns: int) -> int:
        """Return the time of the commands that answer an event; call it once for each event, in order."""
        jitter_ns = self._random.randrange(self._jitter_ns) if self._jitter_ns else 0
        self._latest_ns = max(self._latest_ns, at_ns + self._delay_ns + jitter_ns)
        return self._latest_ns


class FileChannel:
    """A Channel to the datapath of this kernel."""

    def __init__(self, delays: Delays, report_us: int) -> None:
        self._delays, self._report_us = delays, report_us
        self._fd = -1

    @property
    def descriptors(self) -> tuple[int, ...]:
        """See Channel; it opens its files itself."""
        return ()

    def open(self, programs: Programs, answer: Answer) -> None:
        """See Channel. Raises OSError, with EBUSY if there is another agent."""
        self._answer = answer
        _write(FOLDER / "programs", programs.packed())
        self._fd = os.open(FOLDER / "agent", os.O_RDWR)
        self._poller = select.poll()
        self._poller.register(self._fd, select.POLLIN)

    def wait(self) -> None:
        """See Channel."""
        if not self._poller.poll(WAIT_MS):
            return
        data = os.read(self._fd, MAX_EVENTS * EVENT.size)
        events = (data[start : start + EVENT.size] for start in range(0, len(data), EVENT.size))
        packed = [
            self._packed(command, due_ns)
            for event, at_ns in map(decoded, events)
            for due_ns in [self._delays.due_ns(at_ns)]
            for command in self._answer(event)
        ]
        if packed:
            os.write(self._fd, b"".join(packed))

    def beat(self) -> None:
        """See Channel."""
        _write(FOLDER / "control", beat_of(self._report_us))

    def give(self, command: Command) -> None:
        """See Channel; the command takes effect as if it answered an event of this instant."""
        os.write(self._fd, self._packed(command, self._delays.due_ns(time.monotonic_ns())))

    def delays_us(self) -> tuple[float, float, float]:
        """See Channel; the datapath measures them itself (BuiltInActivity)."""
        return 0.0, 0.0, 0.0

    def close(self) -> None:
        """See Channel."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _packed(self, command: Command, due_ns: int) -> bytes:
        parts = (
            SETS_WINDOW * (command.cwnd_bytes is not None)
            | SETS_RATE * (command.rate_bps is not None)
            | FALLS_BACK * command.fall_back
            | SETS_PROGRAM * (command.program is not None)
        )
        controls = dict(command.controls)
        bits = sum(1 << number for number in controls)
        values = [controls.get(number, 0) for number in range(FIELDS)]
        window, rate = command.cwnd_bytes or 0, (command.rate_bps or 0) // BITS
        return _FILE_COMMAND.pack(
            due_ns, command.flow, parts, window, rate, command.program or 0, bits, *values
        )


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
