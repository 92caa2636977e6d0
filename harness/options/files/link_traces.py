"""A user's trace of a link: `--link-trace @FILE`, in the format of the mahimahi emulator.

Each line of FILE has the time in whole milliseconds of one delivery opportunity; times do not fall. The trace
repeats from its last line on. Text after # is a comment. The opportunities become part of the spec, so
results do not depend on the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common.errors import UsageError
from common.named_files import text_of
from model.link_traces import MAX_PERIOD_MS, checked, link_trace, packed

FILE_MARK = "@"


def parsed(option: str, text: str) -> str:
    """Return the text of a spec for `lte:SEED`, `@FILE`, or a stored trace. Raises UsageError."""
    if text.startswith(FILE_MARK):
        return packed(checked(_counts(text.removeprefix(FILE_MARK)), f"{option} {text}"))
    link_trace(text)
    return text


def _counts(path: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    lines = text_of(f"trace file {path}", Path(path)).splitlines()
    times: list[int] = []
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            times.append(_time_ms(f"trace file {path}, line {number}", text, times[-1] if times else 0))
    if not times or times[-1] == 0:
        raise UsageError(f"trace file {path}: give opportunities after 0 ms, one per line")
    # An opportunity at 0 ms comes at the end of the first millisecond, like one at 1 ms.
    return np.bincount(np.maximum(np.array(times, np.int64), 1) - 1, minlength=times[-1]).astype(np.int64)


def _time_ms(where: str, text: str, before: int) -> int:
    if not text.isdecimal() or int(text) > MAX_PERIOD_MS:
        raise UsageError(f"{where}: '{text}' is not a time in whole milliseconds from 0 to {MAX_PERIOD_MS}")
    if int(text) < before:
        raise UsageError(f"{where}: times must not fall from line to line ({before}, then {text})")
    return int(text)
