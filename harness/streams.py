"""What the commands write to: consoles for people, and streams of JSON lines."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import IO, Any

from rich.console import Console

from harness.results.store import finite

PIPE_WIDTH = 110
LINE_WIDTH = 80


def console_for(stream: IO[str]) -> Console:
    """Return a console on `stream`. A pipe has no width; it gets one that cuts no table."""
    return Console(file=stream) if stream.isatty() else Console(file=stream, width=PIPE_WIDTH)


def fitted(text: str, indent: int = 0) -> str:
    """Return a line in lines of LINE_WIDTH columns; all but the first begin with `indent` spaces."""
    return textwrap.fill(
        text,
        LINE_WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def write_json(stream: IO[str], fields: Mapping[str, Any]) -> None:
    """Write one object on one line of `stream`, and flush it."""
    stream.write(json.dumps(finite(fields), allow_nan=False) + "\n")
    stream.flush()
