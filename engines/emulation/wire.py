"""A RunResult as JSON values, for the pipe between the inner and the outer process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from engines.result import FlowRow, PortRow, RunResult, Status, Table


def encode(result: RunResult) -> dict[str, Any]:
    """Plain JSON types; `decode` is the inverse."""
    return dataclasses.asdict(result)


def decode(data: Mapping[str, Any]) -> RunResult:
    return RunResult(
        status=Status(data["status"]),
        reasons=tuple(data["reasons"]),
        flows=tuple(FlowRow(**row) for row in data["flows"]),
        ports=tuple(PortRow(**row) for row in data["ports"]),
        samples={
            name: Table(tuple(table["columns"]), table["rows"]) for name, table in data["samples"].items()
        },
        metrics=data["metrics"],
        provenance=data["provenance"],
    )
