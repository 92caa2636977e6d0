"""RunResult as JSON values, on the way from where hosts run to the outer process."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from model.reasons import Reason
from model.result import FlowRow, PortRow, RunResult, Status, Table


def encode(result: RunResult) -> dict[str, Any]:
    """Return plain JSON types; `decode` is the inverse."""
    rest = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name != "samples"}
    plain = dataclasses.asdict(RunResult(**rest))
    return {
        **plain,
        "reasons": [reason.to_json() for reason in result.reasons],
        "cautions": [caution.to_json() for caution in result.cautions],
        "samples": {name: _packed(table) for name, table in result.samples.items()},
    }


def decode(data: Mapping[str, Any]) -> RunResult:
    return RunResult(
        status=Status(data["status"]),
        reasons=tuple(map(Reason.from_json, data["reasons"])),
        cautions=tuple(map(Reason.from_json, data["cautions"])),
        flows=tuple(FlowRow(**row) for row in data["flows"]),
        ports=tuple(PortRow(**row) for row in data["ports"]),
        samples={name: _unpacked(table) for name, table in data["samples"].items()},
        metrics=data["metrics"],
        provenance=data["provenance"],
    )


def _packed(table: Table) -> dict[str, Any]:
    """Return columns as bytes, because a table of queue lengths can have a million numbers."""
    return {
        name: [column.dtype.str, base64.b64encode(np.ascontiguousarray(column).tobytes()).decode()]
        for name, column in table.columns.items()
    }


def _unpacked(columns: Mapping[str, Any]) -> Table:
    return Table(
        {
            name: np.frombuffer(base64.b64decode(data), dtype=np.dtype(kind))
            for name, (kind, data) in columns.items()
        }
    )
