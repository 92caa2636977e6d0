"""The results on disk: results/<experiment>/<point>/{run.json, flows.csv, ports.csv, samples/*.csv.gz, raw/}.

For an engine that gives the same bytes on any machine, origin.json holds the provenance and everything else
that differs between machines. A point's folder appears whole (written aside, synced, renamed) or not at all.
`run.json` has a schema number and the number of rows of every table, so that a later reader knows the format
and notices missing rows. A point's name has its main settings and the content hash of its spec: other
parameters make another point.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import files
from common.errors import StoreError, UsageError
from common.privileges import check_private
from harness.results import tables, tree
from harness.results.attempts import Attempt
from harness.results.store_reading import (
    MAX_NAMED,
    RAW,
    SUMMARY,
    Entry,
    Scan,
    StoredPoint,
    index,
    load,
    load_point,
    point_name,
    sample_path,
    scan,
)
from harness.results.stored_run import FLOWS, FORMAT, PORTS, PROVENANCE, RUN, SAMPLES, SCHEMA, read_run
from model.result import FlowRow, PortRow, RunResult
from model.spec import RunSpec

__all__ = (
    "MAX_NAMED",
    "PROVENANCE",
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
    """The folder of one experiment, open for one sweep; `tag` marks the sweep's unfinished files."""

    directory: Path
    tag: str

    @classmethod
    def open(cls, results: Path, experiment: str) -> Store:
        """Create the folder, check that it is writable, remove unfinished files of runs that died.

        Raises UsageError for a folder that cannot be written, DiskFullError for a full disk.
        """
        directory = results / experiment
        check_private(f"the results folder {directory}", directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            files.discard(files.open_aside(directory, "probe"))
        except OSError as error:
            refused = files.store_error(f"writing to the results folder {directory}", error)
            raise (refused if files.is_full(error) else UsageError(str(refused))) from error
        files.remove_abandoned(directory)
        return cls(directory, secrets.token_hex(4))

    def read(self, known: Mapping[str, StoredPoint] | None = None) -> Scan:
        """Read every point of the folder that is not `known`, as `scan` does."""
        return scan(self.directory, known)

    @contextlib.contextmanager
    def writing(self, spec: RunSpec) -> Iterator[PointWriter]:
        """Open a temporary folder for one point; it is removed on leaving unless committed. Raises
        StoreError."""
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
            path = point.path / PROVENANCE
            data = read_run(path)
        data["attempts"] = [each.to_json() for each in (*point.runs, attempt)]
        files.replace_file(path, _json_bytes(data), self.tag, beside=self.directory)
        return load_point(point.path)

    def clean_up(self) -> None:
        """Remove unfinished files that an interruption left. Raises StoreError."""
        files.remove_tagged(self.directory, self.tag)


@dataclass(frozen=True)
class PointWriter:
    """Writes one point; the engine stores the output of its tools below `raw`."""

    aside: files.Aside
    target: Path
    spec: RunSpec

    @property
    def raw(self) -> Path:
        return self.aside.path / RAW

    def commit(
        self, result: RunResult, hosts: int, elapsed_s: float, attempts: Sequence[Attempt] = ()
    ) -> StoredPoint:
        """Write the result and rename the folder to its final name, replacing an older one.

        `attempts` are all attempts at this point, this one included. Raises StoreError.
        """
        folder = self.aside.path
        with files.storing(f"writing {self.target}"):
            (folder / SAMPLES).mkdir()
            for name, table in result.samples.items():
                files.write_bytes(sample_path(folder, name), tables.table_bytes(table))
            files.write_bytes(folder / FLOWS, tables.rows_bytes(FlowRow, result.flows))
            files.write_bytes(folder / PORTS, tables.rows_bytes(PortRow, result.ports))
            provenance = _provenance(result, elapsed_s, attempts)
            run = _run(self.spec, result, hosts)
            if result.reproducible:
                files.write_bytes(folder / PROVENANCE, _json_bytes({**provenance, "cost": dict(result.cost)}))
            else:
                run |= provenance
            files.write_bytes(folder / RUN, _json_bytes(run))
            files.publish(self.aside, self.target.name)
        return load_point(self.target)

    def adopt(self, packed: Mapping[str, bytes]) -> StoredPoint:
        """Store a point that ran on another machine; `packed` are the files of its folder. Raises
        StoreError."""
        folder = self.aside.path
        with files.storing(f"writing {self.target}"):
            (folder / SAMPLES).mkdir()
            for name, data in packed.items():
                path = folder / name
                if not _is_below(name):
                    raise StoreError(
                        f"writing {self.target}: the worker sent {name}, outside the point's folder; "
                        "check who runs that worker"
                    )
                path.parent.mkdir(parents=True, exist_ok=True)
                files.write_bytes(path, data)
            files.publish(self.aside, self.target.name)
        return load_point(self.target)


def _is_below(name: str) -> bool:
    """Whether a path leads to a place below the folder that it is relative to."""
    parts = name.split("/")
    return "\0" not in name and not {"", ".", ".."}.intersection(parts)


def pack(point: Path) -> dict[str, bytes]:
    """Return the content of every file of a point's folder, by its path in the folder. Raises StoreError."""
    packed = {}
    with files.storing(f"reading {point}"):
        for name, about in tree.walk(point):
            if stat.S_ISREG(about.st_mode):
                with tree.open_below(point, name) as file:
                    packed[name] = file.read()
    return packed


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


def _provenance(result: RunResult, elapsed_s: float, attempts: Sequence[Attempt]) -> dict[str, Any]:
    return {
        "elapsed_s": round(elapsed_s, 3),
        "provenance": dict(result.provenance),
        "attempts": [attempt.to_json() for attempt in attempts],
    }


def _json_bytes(fields: Mapping[str, Any]) -> bytes:
    data = {"format": FORMAT, "schema": SCHEMA, **fields}
    return (json.dumps(finite(data), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def finite(value: Any) -> Any:
    """Return `value` for JSON, with NaN and infinity, which JSON lacks, replaced by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int):  # most values: the question for a Mapping is slow
        return value
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
