"""Lines from a pipe as they arrive; a result with samples is one line of tens of megabytes."""

from __future__ import annotations

import os

READ_BYTES = 1 << 16
"""Capacity of a pipe (pipe(7))."""


class LineReader:
    """Reads lines from `fd`, which the caller owns and closes. The cost of a line is proportional to its
    length, in however many pieces it arrives."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._pieces: list[bytes] = []

    def read(self) -> list[bytes] | None:
        """Read once and return the completed lines without their ends; None at the end of the pipe, where
        an incomplete line is dropped. Blocks only if there is no data."""
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
