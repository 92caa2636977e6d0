"""The agent's interface to the datapath that is built into the guests' kernel, in virtual time.

Files in /proc/refabric/ccp (engines/linux/kernel/congestion/ccp_agent.c). An agent's work takes no virtual
time here: the kernel carries out a command at the time of its event and the delay that the run asks for, as
the simulator does.
"""

from __future__ import annotations

import os
import random
import select
import struct
import time
from pathlib import Path
from typing import NamedTuple

from ccp.algorithm import Command
from ccp.language.programs import Programs
from common.errors import HostUnfitError
from engines.emulation.agent.channel import BITS, EVENT, FIELDS, NS_PER_US, Answer, beat_of, decoded
from engines.emulation.congestion.built_in import FOLDER as PROC

FOLDER = PROC / "ccp"
WAIT_MS = 25
"""Well below the 200 ms without a heartbeat after which the datapath considers the agent dead."""
SETS_WINDOW, SETS_RATE, FALLS_BACK, SETS_PROGRAM = 1, 2, 4, 8
MAX_EVENTS = 256
_COMMAND = struct.Struct(f"<Q2I2Q2I{FIELDS}Q")
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
        return _COMMAND.pack(due_ns, command.flow, parts, window, rate, command.program or 0, bits, *values)


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
