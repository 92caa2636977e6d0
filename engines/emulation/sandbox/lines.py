"""Lines from a pipe, as they arrive: a result with samples is one line of tens of megabytes."""

from __future__ import annotations

import os

READ_BYTES = 1 << 16
"""A pipe holds no more (pipe(7))."""


class LineReader:
    """Reads `fd`, which stays its owner's to close. A line costs time proportional to its length, in however
    many pieces it comes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._pieces: list[bytes] = []

    def read(self) -> list[bytes] | None:
        """One read: the lines it completed, without their ends; None at the end of the pipe, where an
        unfinished line is dropped. Blocks only when nothing is there."""
        data = os.read(self.fd, READ_BYTES)
        if not data:
            self._pieces.clear()
            return None
        first, *rest = data.split(b"\n")
        self._pieces.append(first)
        if not rest:
            return []
        lines = [b"".join(self._pieces), *rest[:-1]]
        self._pieces = [rest[-1]]
        return lines
