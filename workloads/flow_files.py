"""Flows in files, by suffix: our CSV, and the files of HPCC's simulator, htsim and YAPS.

To add a format, write a function and its line in READERS. Hosts have the names of the network, or numbers:
`3` is node `n3` of a network that has such names, and the fourth host of any other (workloads/trace.py).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from common.errors import UsageError
from common.files import text_of
from workloads.flow import Flow
from workloads.trace import MAX_BYTES, MAX_FLOWS

COLUMNS = ("start_s", "src", "dst", "bytes")
"""Columns of our file of flows, in any order."""
Lines = list[tuple[str, str]]
"""Each line with its place, for errors."""
YAPS_BYTES = 1460
"""Payload of a packet, in which YAPS counts sizes."""


def read(what: str, path: Path) -> list[Flow]:
    """Return the flows of a file. Raises UsageError with the line."""
    lines = [
        (f"{what}, line {number}", line)
        for number, line in enumerate(text_of(what, path).removeprefix("\ufeff").splitlines(), 1)
    ]
    while lines and not lines[-1][1].strip():
        lines.pop()
    if len(lines) > MAX_FLOWS + 100:
        raise UsageError(f"{what}: it has more than {MAX_FLOWS} flows; give {MAX_FLOWS} or fewer")
    flows = READERS.get(path.suffix.lower(), _csv)(lines) if lines else []
    if not flows:
        raise UsageError(f"{what}: it has no flows; write a line {','.join(COLUMNS)} and one line per flow")
    return flows


def _csv(lines: Lines) -> list[Flow]:
    """Read a line with COLUMNS, then one line per flow."""
    first, header = lines[0]
    order = [name.strip() for name in header.split(",")]
    if sorted(order) != sorted(COLUMNS):
        raise UsageError(f"{first}: its columns are '{header[:80]}'; write {','.join(COLUMNS)}")
    flows = []
    for where, line in lines[1:]:
        cells = next(csv.reader([line]), [])
        if len(cells) != len(order):
            raise UsageError(f"{where}: {len(cells)} values, not {len(order)} ({','.join(order)})")
        values = {name: cell.strip() for name, cell in zip(order, cells, strict=True)}
        flows.append(_flow(where, values["src"], values["dst"], values["bytes"], values["start_s"]))
    return flows


def _numbers(lines: Lines) -> list[Flow]:
    """Read a `.txt`: HPCC's flow.txt, which begins with the number of its flows, or else flows of YAPS."""
    cells = [(where, line.split()) for where, line in lines if line.strip()]
    if cells and len(cells[0][1]) == 1:
        return _hpcc(cells)
    return [
        _flow(where, src, dst, size, start, times=YAPS_BYTES)
        for where, line in cells
        for _, start, _, _, size, _, _, src, dst in [_exactly(where, line, 9, "0 0.0 0 0 7 0 0 3 12")]
    ]


def _hpcc(cells: list[tuple[str, list[str]]]) -> list[Flow]:
    """Read `src dst pg dport bytes start_s` for each flow."""
    where, (count,) = cells[0]
    if not count.isdecimal() or len(cells) - 1 < int(count):
        raise UsageError(f"{where}: it says {count[:40]} flows, and {len(cells) - 1} lines follow")
    return [
        _flow(where, src, dst, size, start)
        for where, line in cells[1:][: int(count)]
        for src, dst, _, _, size, start in [_exactly(where, line, 6, "0 1 3 100 200000 2.0")]
    ]


def _htsim(lines: Lines) -> list[Flow]:
    """Read connections `0->13 id 1 start 0 size 2000000`, starts in ps; size 0 sends until the run ends."""
    flows = []
    for where, line in lines:
        cells = line.partition("#")[0].split()
        if not cells or cells[0] in {"Nodes", "Connections"}:
            continue
        src, arrow, dst = cells[0].partition("->")
        names, values = cells[1::2], cells[2::2]
        for name in names if arrow else cells[:1]:
            if name not in {"id", "prio", "start", "size"}:
                raise UsageError(
                    f"{where}: {name[:40]} is not read; give connections with a start and a size"
                )
        given = dict(zip(names, values, strict=False))
        if len(names) != len(values) or not {"start", "size"} <= set(given):
            raise UsageError(f"{where}: it is not a connection, as in: 0->13 start 0 size 2000000")
        flows.append(_flow(where, src, dst, given["size"], given["start"], unit_s=1e-12, least=0))
    return flows


READERS: dict[str, Callable[[Lines], list[Flow]]] = {".csv": _csv, ".txt": _numbers, ".cm": _htsim}
"""What reads a file with this suffix; a file with any other is our CSV."""


def _exactly(where: str, cells: Sequence[str], count: int, form: str) -> Sequence[str]:
    if len(cells) < count:
        raise UsageError(f"{where}: {len(cells)} values, not {count}, as in: {form}")
    return cells[:count]


def _flow(
    where: str,
    src: str,
    dst: str,
    size: str,
    start: str,
    *,
    unit_s: float = 1,
    times: int = 1,
    least: int = 1,
) -> Flow:
    """Return a flow that starts at `start` units and sends `size` times `times` bytes. Raises UsageError."""
    start_s, length = _number(where, "start_s", start) * unit_s, _number(where, "bytes", size) * times
    if start_s < 0:
        raise UsageError(f"{where}: start_s is {start_s:g}; give seconds from 0, the start of traffic")
    if length != int(length) or not least <= length <= MAX_BYTES:
        raise UsageError(f"{where}: bytes is {size[:40]}; give a whole number from {least} to 10^15")
    for end, name in (("src", src), ("dst", dst)):
        if not (name.isascii() and name.isalnum()):
            raise UsageError(f"{where}: {end} is '{name[:40]}'; give the name of a host, e.g. p0e0h0")
    if src == dst:
        raise UsageError(f"{where}: {src} sends to itself; give two hosts")
    return Flow(src, dst, int(length), start_s)


def _number(where: str, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{where}: {name} is '{cell[:40]}', not a number")
    return value
