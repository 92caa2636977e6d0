"""A pseudo-terminal of 80 columns, and what a program writes to it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS, ROWS = 80, 24
DEADLINE_S = 120.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*\b(?:3[0-7]|9[0-7]|38;[0-9;]+)m")


@dataclass(frozen=True)
class Shown:
    """What a program wrote to a terminal, and its exit code."""

    raw: str
    exit_code: int

    @property
    def lines(self) -> list[str]:
        """Every line that was ever shown, including lines that were overwritten in place."""
        return [line.rstrip() for line in re.split(r"[\r\n]+", _CONTROL.sub("", self.raw))]

    @property
    def text(self) -> str:
        """All lines in one, with single spaces."""
        return " ".join(" ".join(self.lines).split())

    @property
    def coloured(self) -> bool:
        """Whether anything has a colour; bold text has none."""
        return bool(_COLOUR.search(self.raw))

    @property
    def too_long(self) -> list[str]:
        """The lines that do not fit."""
        return [line for line in self.lines if len(line) > COLUMNS]


def shown(argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Shown:
    """Run a program on a terminal of 80 columns; return what it wrote there. Raises TimeoutExpired."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    outer = {
        name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}
    }
    process = subprocess.Popen(
        argv, cwd=folder, stdin=child, stdout=child, stderr=child, start_new_session=True,
        env={**outer, "TERM": "xterm-256color", **environment},
    )  # fmt: skip
    os.close(child)
    try:
        raw = _everything(parent, time.monotonic() + DEADLINE_S)
        return Shown(raw.decode(), process.wait(timeout=DEADLINE_S))
    finally:
        os.close(parent)
        process.kill()
        process.wait()


def _everything(parent: int, until_s: float) -> bytes:
    text = b""
    while time.monotonic() < until_s:
        try:
            data = os.read(parent, 65536)
        except OSError:  # EIO: the other end is closed
            break
        if not data:
            break
        text += data
    return text
