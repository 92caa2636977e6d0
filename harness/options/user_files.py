"""Files that users name in options: networks, flow sizes, flows, programs and link traces.

Their content becomes part of the spec, so results do not depend on the file. All readers raise UsageError
with the place in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import topos
from common.errors import UsageError
from common.files import label_of, text_of
from model.links import MAX_OPPORTUNITIES, MAX_PERIOD_MS, checked, link_trace, packed
from model.spec import TopologySpec, WorkloadSpec
from topos import from_file
from workloads import app, flow_files
from workloads.sizes import INLINE, MAX_POINTS, PACKET
from workloads.sizes import written as sizes_text
from workloads.trace import NAME as TRACE
from workloads.trace import written as flows_text

FILE, SIZES, LINK_TRACE = "file:", "sizes=@", "@"


def topologies(option: str, texts: tuple[str, ...]) -> tuple[TopologySpec, ...]:
    """Parse networks, `ls,4` or `file:net.json`; keep the order. Raises UsageError."""
    found = []
    for text in texts:
        if text.startswith(FILE):
            found.append(network_of(text.removeprefix(FILE)))
            continue
        try:
            kind, params = topos.parse(text)
            topos.check(kind, params)
        except UsageError as error:
            raise UsageError(f"{option} {text}: {error}") from None
        found.append(TopologySpec(kind, params))
    return tuple(found)


def network_of(text: str) -> TopologySpec:
    """Return the network of `--topology file:net.json`; topos/readers says which files. Raises UsageError."""
    from topos import readers  # noqa: PLC0415  # parsers of XML and YAML, which few commands need

    return TopologySpec(from_file.KIND, readers.parameters_of(text))


def expanded(workload: str) -> str:
    """Return the text of a workload, `pairs:60:sizes=@FILE`, with the numbers of the file for its name.

    Each line of FILE has a size in bytes and the share of flows that are no larger, from 0 to 1 or from 0 to
    100 %, with straight lines between them. With a column between them (ns-2's files), sizes are packets of
    PACKET bytes. Text after # is a comment. Raises UsageError.
    """
    parts = workload.split(":")
    for number, part in enumerate(parts):
        if part.strip().startswith(SIZES):
            parts[number] = f"sizes={INLINE}{sizes_text(_sizes(part.strip().removeprefix(SIZES)))}"
    return ":".join(parts)


def _sizes(path: str) -> list[tuple[int, float]]:
    lines = text_of(f"sizes file {path}", Path(path)).removeprefix("\ufeff").splitlines()
    points: list[tuple[int, float]] = []
    columns = 0
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        where = f"sizes file {path}, line {number}"
        cells = text.split()
        columns = columns or len(cells)
        try:
            if len(cells) != columns or columns not in (2, 3):
                raise ValueError
            size, share = float(cells[0]) * (PACKET if columns == 3 else 1), float(cells[-1])
        except ValueError:
            raise UsageError(
                f"{where}: '{text[:40]}' is not a size in bytes and a share, as in: 8760 0.15 (or packets, "
                "any number and a share, the same on all lines)"
            ) from None
        if not points and (size, share) == (0, 0):
            size = 1
        if not 1 <= size <= 10**12 or size != int(size):
            raise UsageError(f"{where}: sizes are whole numbers from 1 to 10^12 bytes, not {cells[0]}")
        if not 0 <= share <= 100:
            raise UsageError(f"{where}: shares are from 0 to 1, or 0 to 100 %, not {share:g}")
        if points and (size < points[-1][0] or share < points[-1][1]):
            raise UsageError(f"{where}: sizes and shares must not fall from line to line")
        points.append((int(size), share))
    if len(points) < 2 or points[-1][1] not in (1, 100):
        raise UsageError(
            f"sizes file {path}: give two points or more, the last one with a share of 1 (or 100 %)"
        )
    if len(points) > MAX_POINTS:
        raise UsageError(f"sizes file {path}: {len(points)} points; give {MAX_POINTS} or fewer")
    return [(size, share / points[-1][1]) for size, share in points]


def trace_of(path: str) -> WorkloadSpec:
    """Return the workload of `--workload trace:flows.csv`; workloads/flow_files.py says which files."""
    flows = flow_files.read(f"trace {path}", Path(path))
    return WorkloadSpec(TRACE, {"name": label_of(Path(path)), "flows": flows_text(flows)})


def app_of(path: str) -> WorkloadSpec:
    """Return the workload of `--workload app:web.toml`; workloads/app.py says what the file has."""
    return WorkloadSpec(
        app.NAME, {"name": label_of(Path(path)), "programs": app.read(f"app {path}", Path(path))}
    )


OF_FILE: Mapping[str, Callable[[str], WorkloadSpec]] = {TRACE: trace_of, app.NAME: app_of}
"""What reads the file of a workload that consists of one."""


def link_trace_of(option: str, text: str) -> str:
    """Return the text of a spec for `--link-trace`: `lte:SEED`, a stored trace, or `@FILE` as mahimahi's.

    Each line of FILE has the time in whole milliseconds of one delivery opportunity; times do not fall. The
    trace repeats from its last line on. Text after # is a comment. Raises UsageError.
    """
    if not text.startswith(LINK_TRACE):
        link_trace(text)
        return text
    path = text.removeprefix(LINK_TRACE)
    times = [0]
    lines = text_of(f"trace file {path}", Path(path)).splitlines()
    for number, line in enumerate(lines, start=1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        where = f"trace file {path}, line {number}"
        if not written.isdecimal() or int(written) > MAX_PERIOD_MS:
            raise UsageError(
                f"{where}: '{written}' is not a time in whole milliseconds from 0 to {MAX_PERIOD_MS}"
            )
        if int(written) < times[-1]:
            raise UsageError(f"{where}: times must not fall from line to line ({times[-1]}, then {written})")
        times.append(int(written))
    if times[-1] == 0:
        raise UsageError(f"trace file {path}: give opportunities after 0 ms, one per line")
    if len(times) - 1 > MAX_OPPORTUNITIES:
        raise UsageError(
            f"trace file {path}: {len(times) - 1} opportunities, and at most {MAX_OPPORTUNITIES} fit; take "
            f"its beginning, which repeats: head -n {MAX_OPPORTUNITIES} {path} > shorter"
        )
    # An opportunity at 0 ms comes at the end of the first millisecond, like one at 1 ms.
    opportunities = np.bincount(np.maximum(np.array(times[1:], np.int64), 1) - 1, minlength=times[-1])
    return packed(checked(opportunities.astype(np.int64), f"{option} {text}"))
