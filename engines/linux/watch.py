"""Watch over a running guest: its reports, its clock, and the last lines of its console. Pure.

The caller reads files and clocks; all times of the machine are passed in.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from common.errors import DeadlineError
from common.lines import Lines

LAST_LINES = 20
_OUT_OF_MEMORY = ("Out of memory", "out of memory", "deadlocked on memory")
_NOT_MAPPED = "UML ran out of memory on the host side"
"""The machine refused to map a page of the guest into one of its processes (arch/um/kernel/tlb.c)."""
_PANIC = "Kernel panic - not syncing: "
_TRACE = " [<"


@dataclass
class Console:
    """The last lines of the guest's kernel and programs."""

    tail: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    _lines: Lines = field(default_factory=Lines)
    panic: str = ""
    out_of_memory: bool = False
    not_mapped: bool = False

    def take(self, data: bytes) -> None:
        """Read further output."""
        for raw in self._lines.take(data):
            line = raw.decode(errors="replace").rstrip()
            self.panic = self.panic or line.partition(_PANIC)[2]
            if _NOT_MAPPED in line:
                self.not_mapped = True
            elif any(text in line for text in _OUT_OF_MEMORY):
                self.out_of_memory = True
            if line and not line.startswith(_TRACE):
                self.tail.append(line)

    def cause(self, memory_mb: int) -> str:
        """Return why the guest ended, in a few words."""
        if self.out_of_memory:
            return f"it ran out of its {memory_mb} MB of memory"
        if self.not_mapped:
            return "the machine maps no more of its memory: vm.max_map_count is reached, or no memory is free"
        return f"its kernel panicked: {self.panic}" if self.panic else "it ended without a result"

    def last_lines(self) -> str:
        """Return the end of an error message."""
        return ("; its last lines:\n" + "\n".join(self.tail)) if self.tail else ""


@dataclass
class Reports:
    """Messages of the program in the guest, one JSON object per line."""

    _lines: Lines = field(default_factory=Lines)

    def take(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that `data` completes."""
        for line in self._lines.take(data):
            yield json.loads(line)


@dataclass
class VirtualClock:
    """The guest's clock, seen from the machine's. It must go on: within `patience_s` of the machine's time at
    each step, and to the end of the point by `limit_s` of the guest's.

    `began_s` is the machine's time when the guest started.
    """

    began_s: float
    patience_s: float
    limit_s: float
    now_s: float = 0.0
    _first_s: float | None = None
    _moved_s: float = 0.0

    def __post_init__(self) -> None:
        self._moved_s = self.began_s

    def read(self, guest_s: float, machine_s: float) -> None:
        """Note that the guest's clock shows `guest_s`."""
        if self._first_s is None:
            self._first_s = guest_s
        if guest_s > self.now_s:
            self.now_s, self._moved_s = guest_s, machine_s

    def check(self, machine_s: float) -> None:
        """Raise DeadlineError if the guest's clock stands still, or has gone past its limit."""
        still_s = machine_s - self._moved_s
        if still_s > self.patience_s:
            raise DeadlineError(
                f"the guest hangs: its clock has shown {self.now_s:.0f} s for {still_s:.0f} s of real time"
            )
        ran_s = self.now_s - (self._first_s or 0.0)
        if ran_s > self.limit_s:
            raise DeadlineError(f"the emulation did not end within {self.limit_s:g} s of the guest's time")
