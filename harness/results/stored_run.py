"""The checked content of a stored point's run.json: every value has its type, every name is known here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import files, records, stored_json
from common.errors import RefabricError
from harness.results import known
from harness.results.attempts import Attempt
from harness.results.tables import UnreadableError
from model.reasons import Reason
from model.result import Status
from model.spec import RunSpec

SCHEMA = 3
FORMAT = "refabric-run"
RUN, FLOWS, PORTS = "run.json", "flows.csv", "ports.csv"
PROVENANCE = "origin.json"
"""What differs between machines, if all other files have the same bytes on every machine."""
SAMPLES = "samples"
MAX_BYTES = 1 << 26
"""Largest JSON file of the store."""
_SAMPLE = re.compile(r"[a-z0-9_]{1,64}")
_LISTS = ("stalled_attempts", "path_manager_errors")


@dataclass(frozen=True)
class StoredRun:
    """What run.json says, with origin.json where there is one. `flow_rows`, `port_rows` and `sample_rows` are
    the rows of the tables beside it."""

    spec: RunSpec
    status: Status
    reasons: tuple[Reason, ...]
    cautions: tuple[Reason, ...]
    hosts: int
    elapsed_s: float
    flow_rows: int
    port_rows: int
    sample_rows: Mapping[str, int]
    metrics: Mapping[str, float]
    cost: frozenset[str]
    """The names of metrics of the machine that computed a reproducible result."""
    provenance: Mapping[str, Any]
    attempts: tuple[Attempt, ...]


def read(folder: Path) -> StoredRun:
    """Read the run.json of a point's folder. Raises UnreadableError that names the file at fault."""
    run = folder / RUN
    data = read_run(run)
    if "provenance" not in data:
        data |= read_run(folder / PROVENANCE)
    try:
        return _checked(data)
    except KeyError as error:
        raise UnreadableError(run, f"not the run.json of this version ({error} is missing)") from error
    except (TypeError, ValueError, AttributeError, OverflowError, RefabricError) as error:
        raise UnreadableError(run, f"not the run.json of this version ({error})") from error


def read_run(path: Path) -> dict[str, Any]:
    """Read a run.json or origin.json of this version. Raises UnreadableError."""
    try:
        data = stored_json.loads(files.read_bytes(path, MAX_BYTES))
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    except ValueError as error:
        raise UnreadableError(path, f"it is truncated or not JSON ({error})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UnreadableError(path, "it was not written by refabric")
    if data.get("schema") != SCHEMA:
        raise UnreadableError(
            path,
            f"its format is number {data.get('schema')}, this refabric reads {SCHEMA}",
            "use the version that wrote it, or move it away and run the experiment again",
        )
    return data


def _checked(data: Mapping[str, Any]) -> StoredRun:
    """Raises KeyError, TypeError, ValueError, RefabricError."""
    spec = RunSpec.from_json(data["spec"])
    if data["hash"] != spec.content_hash():
        raise ValueError("its spec does not have its hash")
    known.check(spec)
    rows = records.mapping(data["rows"], "rows")
    return StoredRun(
        spec=spec,
        status=Status(records.text(data["status"], "status")),
        reasons=_reasons(data["reasons"]),
        cautions=_reasons(data.get("cautions", [])),
        hosts=records.integer(data["hosts"], "hosts", 0),
        elapsed_s=_not_negative(data["elapsed_s"], "elapsed_s"),
        flow_rows=records.integer(rows[FLOWS], f"rows.{FLOWS}", 0),
        port_rows=records.integer(rows[PORTS], f"rows.{PORTS}", 0),
        sample_rows=_sample_rows(rows[SAMPLES]),
        metrics=_numbers({**_named(data, "metrics"), **_named(data, "cost")}),
        cost=frozenset(_named(data, "cost")),
        provenance=_provenance(data["provenance"]),
        attempts=tuple(map(Attempt.from_json, _list(data.get("attempts", []), "attempts"))),
    )


def _named(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return records.mapping(data[name] if name == "metrics" else data.get(name, {}), name)


def _sample_rows(data: object) -> dict[str, int]:
    found = records.mapping(data, f"rows.{SAMPLES}")
    for name in found:
        if not _SAMPLE.fullmatch(name):
            raise ValueError(f"rows.{SAMPLES} has an impossible name")
    return {name: records.integer(count, f"rows.{SAMPLES}.{name}", 0) for name, count in found.items()}


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: records.number(value, name) for name, value in values.items() if value is not None}


def _provenance(data: object) -> dict[str, Any]:
    found = dict(records.mapping(data, "provenance"))
    for name in _LISTS:
        _list(found.get(name, []), name)
    return found


def _reasons(values: object) -> tuple[Reason, ...]:
    """Read stored reasons; older versions stored texts."""
    return tuple(map(Reason.from_json, _list(values, "reasons")))


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{where} is not a list")
    return value


def _not_negative(value: object, where: str) -> float:
    found = records.number(value, where)
    if found < 0:
        raise ValueError(f"{where} is negative")
    return found
