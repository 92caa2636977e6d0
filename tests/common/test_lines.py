"""Lines from a pipe: none lost, none joined, and long ones in linear time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from common.lines import LineReader, Lines

Pipe = tuple[LineReader, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    yield LineReader(read), write
    os.close(read)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"one\ntwo\n"], [[b"one", b"two"]]),
        ([b"on", b"e\ntw", b"o\n"], [[], [b"one"], [b"two"]]),
        ([b"\n", b"\n\n"], [[b""], [b"", b""]]),
        ([b"one", b"\n"], [[], [b"one"]]),
    ],
)
def test_lines_are_whole_however_they_arrive(
    pipe: Pipe, pieces: list[bytes], expected: list[list[bytes]]
) -> None:
    reader, write = pipe
    got = []
    for piece in pieces:
        os.write(write, piece)
        got.append(reader.read())
    os.close(write)
    assert got == expected
    assert reader.read() is None


def test_an_unfinished_line_ends_with_its_pipe(pipe: Pipe) -> None:
    reader, write = pipe
    os.write(write, b"half a li")
    os.close(write)
    assert reader.read() == []
    assert reader.read() is None


def test_a_long_line_takes_linear_time(pipe: Pipe) -> None:
    """30 MB in pieces of 4 kB: 0.1 s. Copying the beginning at every piece moves 115 GB and takes minutes."""
    reader, write = pipe
    piece, pieces = b"x" * 4096, (30 << 20) // 4096
    began = time.process_time()
    for _ in range(pieces):
        os.write(write, piece)
        assert reader.read() == []
        assert time.process_time() - began < 5.0, "quadratic"
    os.write(write, b"\nnext\n")
    os.close(write)
    line, following = reader.read() or (b"", b"")
    assert (len(line), following) == (30 << 20, b"next")


def test_pieces_without_a_pipe_become_the_same_lines() -> None:
    lines = Lines()
    assert [lines.take(piece) for piece in (b"on", b"e\ntwo\nth", b"ree\n")] == [
        [],
        [b"one", b"two"],
        [b"three"],
    ]
    lines.take(b"incomplete")
    lines.drop()
    assert lines.take(b"next\n") == [b"next"]
