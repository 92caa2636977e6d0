"""What the commands write to: consoles for people, and streams of JSON lines.

Names and texts that others chose reach a terminal with their control characters escaped, whoever prints them:
the standard streams do it while a command runs (`escaped`), and consoles, which write controls of their own.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from common.errors import DiskFullError
from common.files import is_full
from common.text import printable
from harness.results.store import finite

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 110
LINE_WIDTH = 80


class Escaping:
    """A stream that passes text on to `stream` with its control characters escaped."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        try:
            return self.stream.write(printable(text))
        except OSError as error:
            if is_full(error):
                raise DiskFullError(f"writing the output: {error.strerror}") from error
            raise

    def writelines(self, lines: Iterable[str]) -> None:
        self.stream.writelines(map(printable, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def escaped() -> Iterator[None]:
    """Escape the control characters of all that the block prints to the standard streams, and what their
    encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as Python's stderr
    with _streams(*(cast(TextIO, Escaping(stream)) for stream in (sys.stdout, sys.stderr))):
        yield


@contextlib.contextmanager
def unescaped() -> Iterator[None]:
    """Undo `escaped` for the block: what the user's own programs print there is theirs."""
    with _streams(*(cast(TextIO, _within(stream)) for stream in (sys.stdout, sys.stderr))):
        yield


@contextlib.contextmanager
def _streams(out: TextIO, err: TextIO) -> Iterator[None]:
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _within(stream: IO[str]) -> IO[str]:
    return stream.stream if isinstance(stream, Escaping) else stream


@functools.cache
def _kind() -> type[Console]:
    """Return the class of consoles that escape the control characters of texts, not their own."""
    from rich.console import Console, ConsoleOptions, RenderableType  # noqa: PLC0415 -- short commands have none
    from rich.segment import Segment  # noqa: PLC0415

    class Escaped(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                is_fine = segment.control or segment.text.isprintable()
                yield segment if is_fine else Segment(printable(segment.text), segment.style)

    return Escaped


def console_for(stream: IO[str]) -> Console:
    """Return a console on `stream`. A pipe has no width; it gets one that cuts no table."""
    stream = _within(stream)
    return _kind()(file=stream) if stream.isatty() else _kind()(file=stream, width=PIPE_WIDTH)


def fitted(text: str, indent: int = 0) -> str:
    """Return a line in lines of LINE_WIDTH columns; all but the first begin with `indent` spaces."""
    return "\n".join(wrapped(text, LINE_WIDTH, indent))


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Return lines of at most `width` columns; all but the first begin with `indent` spaces. Words, such as
    paths, are not broken."""
    return textwrap.wrap(
        text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def print_wrapped(console: Console, text: str, style: str = "", indent: int = 2) -> None:
    """Print a sentence: on a terminal in lines that fit it, into a pipe on one line."""
    from rich.text import Text  # noqa: PLC0415

    lines = wrapped(text, console.width, indent) if console.is_terminal else [text]
    for line in lines:
        console.print(Text(line, style), soft_wrap=True)


def write_json(stream: IO[str], fields: Mapping[str, Any]) -> None:
    """Write one object on one line of `stream`, and flush it."""
    stream.write(json.dumps(finite(fields), allow_nan=False) + "\n")
    stream.flush()
