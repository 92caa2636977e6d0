"""Progress of a build: its step, the share that is done, and the time that is left."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

LINES = 1428
"""Lines that make prints in a whole build: one per file that it makes."""
SHARES = {
    "download and unpack the source": 4.0, "unpack the source": 4.0, "change and configure it": 3.0,
    "compile": 92.0, "try it": 1.0,
}  # fmt: skip
"""What each step takes of the whole time, in percent."""
_MADE = re.compile(r"^  [A-Z][A-Z0-9]* +\S")
_ENOUGH = 0.03
"""The share of the compilation from which its speed is known."""


@dataclass(frozen=True)
class Moment:
    """Where a build is: the step, the share of the whole in percent, and seconds left (None: not known)."""

    step: str
    pct: float
    left_s: float | None = None


Progress = Callable[[Moment], None]


class Steps:
    """Follows a build and reports each change of a whole percent. `clock` is in seconds."""

    def __init__(self, report: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        self._step = ""
        self._before_pct = 0.0
        self._began_s = clock()
        self._made = 0
        self._shown_pct = -1

    def begin(self, step: str) -> None:
        """Begin a step of SHARES, in that order."""
        self._before_pct += SHARES.get(self._step, 0.0)
        self._step, self._began_s, self._made = step, self._clock(), 0
        self._tell(0.0)

    def compiled(self, line: str) -> None:
        """Count a line of make."""
        if _MADE.match(line):
            self._made += 1
            self._tell(min(self._made / LINES, 0.99))

    def end(self) -> None:
        """The build is complete."""
        self._report(Moment("done", 100.0, 0.0))

    def _tell(self, share: float) -> None:
        pct = self._before_pct + share * SHARES[self._step]
        if int(pct) == self._shown_pct and share > 0:
            return
        self._shown_pct = int(pct)
        took_s = self._clock() - self._began_s
        left_s = took_s * (1 - share) / share if share >= _ENOUGH else None
        self._report(Moment(self._step, pct, left_s))
