"""Lines from a stream as its pieces arrive; a result with samples is one line of tens of megabytes."""

from __future__ import annotations

import os

READ_BYTES = 1 << 16
"""Capacity of a pipe (pipe(7))."""


class Lines:
    """Joins pieces to lines. The cost of a line is proportional to its length, in however many pieces it
    arrives."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def take(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their ends."""
        first, *rest = data.split(b"\n")
        self._pieces.append(first)
        if not rest:
            return []
        lines = [b"".join(self._pieces), *rest[:-1]]
        self._pieces = [rest[-1]]
        return lines

    def drop(self) -> None:
        """Forget an incomplete line."""
        self._pieces.clear()


class LineReader:
    """Reads lines from `fd`, which the caller owns and closes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._lines = Lines()

    def read(self) -> list[bytes] | None:
        """Read once and return the completed lines without their ends; None at the end of the pipe, where
        an incomplete line is dropped. Blocks only if there is no data."""
        data = os.read(self.fd, READ_BYTES)
        if data:
            return self._lines.take(data)
        self._lines.drop()
        return None
