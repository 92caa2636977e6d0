"""A user's flows: `--workload trace:flows.csv`.

The first line has the names of the columns: start_s, src, dst and bytes, in any order. Every other line is a
flow. The flows become part of the spec, so results do not depend on the file.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

from common.errors import UsageError
from common.named_files import label_of, text_of
from model.spec import WorkloadSpec
from workloads.flow import Flow
from workloads.trace import MAX_BYTES, MAX_FLOWS, NAME, written

COLUMNS = ("start_s", "src", "dst", "bytes")


def trace_of(path: str) -> WorkloadSpec:
    """Return the workload of a file. Raises UsageError, one line with the number of the line at fault."""
    what = f"trace {path}"
    lines = text_of(what, Path(path)).splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    order = _order(what, lines[0] if lines else "")
    if len(lines) < 2:
        raise UsageError(f"{what}: it has no flows; write a line {','.join(COLUMNS)} and one line per flow")
    if len(lines) - 1 > MAX_FLOWS:
        raise UsageError(f"{what}: it has {len(lines) - 1} flows; give {MAX_FLOWS} or fewer")
    flows = [_flow(f"{what}, line {number}", line, order) for number, line in enumerate(lines[1:], 2)]
    return WorkloadSpec(NAME, {"name": label_of(Path(path)), "flows": written(flows)})


def _order(what: str, header: str) -> list[str]:
    """Return the columns of the file in their order. Raises UsageError."""
    names = [name.strip() for name in header.removeprefix("\ufeff").split(",")]
    if sorted(names) != sorted(COLUMNS):
        raise UsageError(f"{what}, line 1: its columns are '{header[:80]}'; write {','.join(COLUMNS)}")
    return names


def _flow(where: str, line: str, order: list[str]) -> Flow:
    cells = next(csv.reader([line]), [])
    if len(cells) != len(order):
        raise UsageError(f"{where}: {len(cells)} values, not {len(order)} ({','.join(order)})")
    values = {name: cell.strip() for name, cell in zip(order, cells, strict=True)}
    start_s, size = _number(where, "start_s", values["start_s"]), _number(where, "bytes", values["bytes"])
    if start_s < 0:
        raise UsageError(f"{where}: start_s is {start_s:g}; give seconds from 0, the start of traffic")
    if size != int(size) or not 1 <= size <= MAX_BYTES:
        raise UsageError(f"{where}: bytes is {values['bytes']}; give a whole number from 1 to 10^15")
    for end in ("src", "dst"):
        if not (values[end].isascii() and values[end].isalnum()):
            raise UsageError(f"{where}: {end} is '{values[end][:40]}'; give the name of a host, e.g. p0e0h0")
    if values["src"] == values["dst"]:
        raise UsageError(f"{where}: {values['src']} sends to itself; give two hosts")
    return Flow(values["src"], values["dst"], int(size), start_s)


def _number(where: str, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{where}: {name} is '{cell[:40]}', not a number")
    return value
