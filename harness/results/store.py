"""The results on disk: results/<experiment>/<point>/{run.json, flows.csv, ports.csv, samples/*.csv.gz, raw/}.

Beside them stands origin.json where the same spec gives the same bytes on any machine: it has what does not.
A point folder appears whole (written aside, synced, renamed) or not at all. `run.json` carries a
schema number and promises the rows of every table beside it, so that a reader of any later day
knows what it has before it, and notices what is missing. A point is named by what a reader wants
to know and by the content hash of its spec: other parameters are another point.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import files
from common.errors import HostUnfitError, StoreError, UsageError
from harness.execute.attempts import Attempt
from harness.results import tables
from harness.results.store_reading import (
    FLOWS,
    FORMAT,
    MOST_NAMED,
    ORIGIN,
    PORTS,
    RAW,
    RUN,
    SAMPLES,
    SCHEMA,
    SUMMARY,
    Entry,
    Scan,
    StoredPoint,
    index,
    load,
    load_point,
    point_name,
    read_run,
    sample_path,
    scan,
)
from model.result import FlowRow, PortRow, RunResult
from model.spec import RunSpec

__all__ = (
    "MOST_NAMED",
    "ORIGIN",
    "RAW",
    "RUN",
    "SCHEMA",
    "SUMMARY",
    "Entry",
    "PointWriter",
    "Scan",
    "Store",
    "StoredPoint",
    "finite",
    "index",
    "load",
    "load_point",
    "pack",
    "point_name",
    "sample_path",
    "scan",
)


@dataclass
class Store:
    """The folder of one experiment, open for one sweep; `tag` marks what that leaves unfinished."""

    directory: Path
    tag: str

    @classmethod
    def open(cls, results: Path, experiment: str) -> Store:
        """Create the folder, prove that it can be written, remove what dead runs left unfinished.

        Raises UsageError for a folder that cannot be written, HostUnfitError for a full disk.
        """
        directory = results / experiment
        try:
            files.make_folder(directory)
            files.discard(files.open_aside(directory, "probe"))
        except OSError as error:
            text = str(files.store_error(f"writing to the results folder {directory}", error))
            raise (HostUnfitError(text) if files.is_full(error) else UsageError(text)) from error
        files.remove_abandoned(directory)
        return cls(directory, secrets.token_hex(4))

    @contextlib.contextmanager
    def writing(self, spec: RunSpec) -> Iterator[PointWriter]:
        """A folder aside for one point; gone again on leaving, unless committed. Raises StoreError."""
        name = point_name(spec)
        with files.storing(f"creating a folder for {name} in {self.directory}"):
            aside = files.open_aside(self.directory, name, self.tag)
        try:
            with files.storing(f"creating {aside.path / RAW}"):
                (aside.path / RAW).mkdir()
            yield PointWriter(aside, self.directory / name, spec)
        finally:
            files.discard(aside)

    def note_attempt(self, point: StoredPoint, attempt: Attempt) -> StoredPoint:
        """Add an attempt that does not count to a stored point. Raises StoreError."""
        path = point.path / RUN
        data = read_run(path)
        if "provenance" not in data:
            path = point.path / ORIGIN
            data = read_run(path)
        data["attempts"] = [each.to_json() for each in (*point.runs, attempt)]
        files.replace_file(path, _json_bytes(data), self.tag, beside=self.directory)
        return load_point(point.path)

    def clean_up(self) -> None:
        """Remove what an interruption between two instructions may have left. Raises StoreError."""
        files.remove_tagged(self.directory, self.tag)


@dataclass(frozen=True)
class PointWriter:
    """One point being written; the engine puts its tools' output below `raw`."""

    aside: files.Aside
    target: Path
    spec: RunSpec

    @property
    def raw(self) -> Path:
        return self.aside.path / RAW

    def commit(
        self, result: RunResult, hosts: int, elapsed_s: float, attempts: Sequence[Attempt] = ()
    ) -> StoredPoint:
        """Write the result and give the folder its name, replacing an older one. `attempts` are all at this
        point, this one included. Raises StoreError."""
        folder = self.aside.path
        with files.storing(f"writing {self.target}"):
            (folder / SAMPLES).mkdir()
            for name, table in result.samples.items():
                files.write_bytes(sample_path(folder, name), tables.table_bytes(table))
            files.write_bytes(folder / FLOWS, tables.rows_bytes(FlowRow, result.flows))
            files.write_bytes(folder / PORTS, tables.rows_bytes(PortRow, result.ports))
            origin = _origin(result, elapsed_s, attempts)
            run = _run(self.spec, result, hosts)
            if result.reproducible:
                files.write_bytes(folder / ORIGIN, _json_bytes({**origin, "cost": dict(result.cost)}))
            else:
                run |= origin
            files.write_bytes(folder / RUN, _json_bytes(run))
            files.publish(self.aside, self.target)
        return load_point(self.target)

    def adopt(self, packed: Mapping[str, bytes]) -> StoredPoint:
        """Store a point that was carried out elsewhere; `packed` is its folder. Raises StoreError."""
        folder = self.aside.path
        with files.storing(f"writing {self.target}"):
            (folder / SAMPLES).mkdir()
            for name, data in packed.items():
                path = folder / name
                if folder.resolve() not in path.resolve().parents:
                    raise StoreError(f"writing {self.target}: the point has a file called {name}, outside it")
                path.parent.mkdir(parents=True, exist_ok=True)
                files.write_bytes(path, data)
            files.publish(self.aside, self.target)
        return load_point(self.target)


def pack(point: Path) -> dict[str, bytes]:
    """Every file of a point's folder by its path there. Raises StoreError."""
    with files.storing(f"reading {point}"):
        found = sorted(path for path in point.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path.relative_to(point)): path.read_bytes() for path in found}


def _run(spec: RunSpec, result: RunResult, hosts: int) -> dict[str, Any]:
    return {
        "hash": spec.content_hash(),
        "spec": spec.to_json(),
        "status": result.status.value,
        "reasons": [reason.to_json() for reason in result.reasons],
        "cautions": [caution.to_json() for caution in result.cautions],
        "hosts": hosts,
        "metrics": dict(result.metrics),
        "rows": {
            FLOWS: len(result.flows),
            PORTS: len(result.ports),
            SAMPLES: {name: len(table) for name, table in result.samples.items()},
        },
    }


def _origin(result: RunResult, elapsed_s: float, attempts: Sequence[Attempt]) -> dict[str, Any]:
    return {
        "elapsed_s": round(elapsed_s, 3),
        "provenance": dict(result.provenance),
        "attempts": [attempt.to_json() for attempt in attempts],
    }


def _json_bytes(fields: Mapping[str, Any]) -> bytes:
    data = {"format": FORMAT, "schema": SCHEMA, **fields}
    return (json.dumps(finite(data), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def finite(value: Any) -> Any:
    """`value` for JSON, which has no NaN and no infinity: they become null, "no value"."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
