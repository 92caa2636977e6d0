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

from common.errors import RunError
from engines.engine import Observer, follower
from model.reasons import Reason
from model.result import FlowRow, Instant, PortRow, RunResult, Status, Table

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


class ResultReader:
    """Reads the messages of the program that runs the hosts: phases, notes and instants for the observer, and
    finally the result, the inverse of `messages`."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._follow = follower(observer)
        self._parts: dict[str, list[Table]] = {}
        self._result: RunResult | None = None

    def take(self, message: Mapping[str, Any]) -> None:
        """Take the next message."""
        if "phase" in message:
            self._observer.phase(message["phase"], message["seconds"])
        elif "note" in message:
            self._observer.note(message["note"])
        elif "instant" in message:
            if self._follow:
                self._follow(Instant.from_json(message["instant"]))
        elif "part" in message:
            self._parts.setdefault(message["part"], []).append(_unpacked(message["columns"]))
        else:
            self._result = self._decoded(message["result"])

    def _decoded(self, data: Mapping[str, Any]) -> RunResult:
        samples = {name: _joined(parts) for name, parts in self._parts.items()}
        self._parts.clear()
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

    def result(self, program: str) -> RunResult:
        """Return the result. Raises RunError if `program` ended without one."""
        if self._result is None:
            raise RunError(f"running the {program}: it ended without a result; run the point again")
        return self._result


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
