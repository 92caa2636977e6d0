"""A point's result as JSON messages, on the way from where hosts run to the outer process.

Sample tables go before the result, in parts. A window of a hundred seconds has hundreds of MB of samples, and
as one message they would be in memory five times.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from model.reasons import Reason
from model.result import FlowRow, PortRow, RunResult, Status, Table

Parts = Iterable[tuple[str, Table]]
"""Names of tables and some of their rows. The parts of a table are in order."""
MOST_ROWS = 1 << 16


def messages(result: RunResult, parts: Parts) -> Iterator[dict[str, Any]]:
    """Yield messages of plain JSON types: the parts of all sample tables, then the rest of `result`."""
    for name, table in parts:
        for begin in range(0, max(1, len(table)), MOST_ROWS):
            yield {"part": name, "columns": _packed(table, slice(begin, begin + MOST_ROWS))}
    plain = dataclasses.asdict(dataclasses.replace(result, samples={}))
    yield {
        "result": {
            **plain,
            "reasons": [reason.to_json() for reason in result.reasons],
            "cautions": [caution.to_json() for caution in result.cautions],
        }
    }


class Received:
    """Puts a result together again; the inverse of `messages`."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Table]] = {}
        self.result: RunResult | None = None

    def take(self, message: Mapping[str, Any]) -> None:
        """Take the next message."""
        if "part" in message:
            self._parts.setdefault(message["part"], []).append(_unpacked(message["columns"]))
            return
        samples = {name: _joined(parts) for name, parts in self._parts.items()}
        self._parts.clear()
        self.result = _decoded(message["result"], samples)


def _decoded(data: Mapping[str, Any], samples: Mapping[str, Table]) -> RunResult:
    return RunResult(
        status=Status(data["status"]),
        reasons=tuple(map(Reason.from_json, data["reasons"])),
        cautions=tuple(map(Reason.from_json, data["cautions"])),
        flows=tuple(FlowRow(**row) for row in data["flows"]),
        ports=tuple(PortRow(**row) for row in data["ports"]),
        samples=samples,
        metrics=data["metrics"],
        provenance=data["provenance"],
    )


def _packed(table: Table, rows: slice) -> dict[str, Any]:
    """Return columns as bytes, because a table of queue lengths can have millions of numbers."""
    return {
        name: [column.dtype.str, base64.b64encode(np.ascontiguousarray(column[rows]).tobytes()).decode()]
        for name, column in table.columns.items()
    }


def _unpacked(columns: Mapping[str, Any]) -> Table:
    return Table(
        {
            name: np.frombuffer(base64.b64decode(data), dtype=np.dtype(kind))
            for name, (kind, data) in columns.items()
        }
    )


def _joined(parts: list[Table]) -> Table:
    return Table({name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns})
