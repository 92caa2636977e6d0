"""A user's distribution of flow sizes: `--workload pairs:60:sizes=@FILE`.

Each line of FILE has a size in bytes and the share of flows that are no larger, from 0 to 1, with straight
lines between them. Text after # is a comment. The numbers become part of the spec, so results do not depend
on the file.
"""

from __future__ import annotations

from pathlib import Path

from common.errors import UsageError
from common.named_files import text_of
from workloads.sizes import INLINE, MAX_POINTS, written

_MARK = "sizes=@"


def expanded(workload: str) -> str:
    """Return the text of a workload with the numbers of a file in place of its name. Raises UsageError."""
    parts = workload.split(":")
    return ":".join(_expanded(part) for part in parts)


def _expanded(part: str) -> str:
    stripped = part.strip()
    if not stripped.startswith(_MARK):
        return part
    path = stripped.removeprefix(_MARK)
    return f"sizes={INLINE}{written(_points(path))}"


def _points(path: str) -> list[tuple[int, float]]:
    lines = text_of(f"sizes file {path}", Path(path)).splitlines()
    points: list[tuple[int, float]] = []
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            points.append(_point(f"sizes file {path}, line {number}", text, points))
    if len(points) < 2 or points[-1][1] != 1:
        raise UsageError(f"sizes file {path}: give two points or more, the last one with a share of 1")
    if len(points) > MAX_POINTS:
        raise UsageError(f"sizes file {path}: {len(points)} points; give {MAX_POINTS} or fewer")
    return points


def _point(where: str, text: str, before: list[tuple[int, float]]) -> tuple[int, float]:
    try:
        size_text, share_text = text.split()
        size, share = int(size_text), float(share_text)
    except ValueError:
        raise UsageError(f"{where}: '{text}' is not a size in bytes and a share, as in: 8760 0.15") from None
    if not 1 <= size <= 10**12:
        raise UsageError(f"{where}: sizes are from 1 to 10^12 bytes, not {size}")
    if not 0 <= share <= 1:
        raise UsageError(f"{where}: shares are from 0 to 1, not {share:g}")
    if before and (size < before[-1][0] or share < before[-1][1]):
        raise UsageError(f"{where}: sizes and shares must not fall from line to line")
    return size, share
