"""What the commands write to: consoles for people, and streams of JSON lines."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from harness.results.store import finite

PIPE_WIDTH = 110
LINE_WIDTH = 80


def console_for(stream: IO[str]) -> Console:
    """Return a console on `stream`. A pipe has no width; it gets one that cuts no table."""
    return Console(file=stream) if stream.isatty() else Console(file=stream, width=PIPE_WIDTH)


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
    lines = wrapped(text, console.width, indent) if console.is_terminal else [text]
    for line in lines:
        console.print(Text(line, style), soft_wrap=True)


def write_json(stream: IO[str], fields: Mapping[str, Any]) -> None:
    """Write one object on one line of `stream`, and flush it."""
    stream.write(json.dumps(finite(fields), allow_nan=False) + "\n")
    stream.flush()
