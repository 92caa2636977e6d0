"""The results on disk: results/<experiment>/<point>/{run.json, flows.csv, ports.csv, samples/*.csv.gz, raw/}.

A point folder appears whole (written aside, synced, renamed) or not at all. `run.json` carries a
schema number and promises the rows of every table beside it, so that a reader of any later day
knows what it has before it, and notices what is missing. A point is named by what a reader wants
to know and by the content hash of its spec: other parameters are another point.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.result import FlowRow, PortRow, RunResult, Status, Table
from engines.spec import RunSpec
from experiments import files, tables
from fabric.errors import HostUnfitError, RefabricError, StoreError, UsageError

SCHEMA = 2
FORMAT = "refabric-run"
RUN, FLOWS, PORTS, SUMMARY = "run.json", "flows.csv", "ports.csv", "summary.csv"
SAMPLES, RAW = "samples", "raw"
_POINT = re.compile(r".+-[0-9a-f]{12}\Z")


def point_name(spec: RunSpec) -> str:
    """The point's folder: `k8-one_to_one-mptcp8-reno-5mbps-s1-<hash>`; engines but mininet lead the name."""
    topology = spec.topology
    size = f"{'k' if topology.kind == 'fat_tree' else topology.kind}{topology.k}"
    transport = spec.transport.name + (str(spec.transport.subflows) if spec.transport.subflows > 1 else "")
    workload = spec.workload.matrix + "".join(f"_{n}{v}" for n, v in sorted(spec.workload.params.items()))
    parts = [size, workload, transport, spec.transport.cc, f"{spec.link.rate_mbps:g}mbps"]
    if spec.engine != "mininet":
        parts.insert(0, spec.engine)
    return "-".join([*parts, f"s{spec.seed}", spec.content_hash()])


@dataclass(frozen=True)
class StoredPoint:
    """One point read back. `hosts` counts the topology's hosts; `elapsed_s` is the wall time it took.

    Samples stay on disk until `sample` asks: a sweep with queue samples does not fit in memory.
    """

    path: Path
    spec: RunSpec
    status: Status
    reasons: tuple[str, ...]
    hosts: int
    elapsed_s: float
    flows: tuple[FlowRow, ...]
    ports: tuple[PortRow, ...]
    metrics: Mapping[str, float]
    provenance: Mapping[str, Any]
    sample_rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def finished(self) -> bool:
        """Whether a run may skip it: failed points are retried."""
        return self.status is not Status.FAILED

    def sample(self, name: str) -> Table:
        """The sample table called `name`. Raises StoreError when there is none or it is damaged."""
        if name not in self.sample_rows:
            have = ", ".join(sorted(self.sample_rows)) or "none"
            raise StoreError(f"reading {self.path}: no samples called {name}; it has: {have}")
        return tables.read_table(_sample_path(self.path, name), self.sample_rows[name])


@dataclass(frozen=True)
class Scan:
    """What a results folder holds: points that can be used, and what is wrong with the others."""

    points: tuple[StoredPoint, ...]
    broken: tuple[StoreError, ...]


def scan(experiment_dir: Path) -> Scan:
    """Read every point of the folder; a damaged one costs itself alone. A missing folder has no points.

    Raises UsageError when the folder itself cannot be read: it is the one the user chose.
    """
    points, broken = [], []
    try:
        entries = sorted(experiment_dir.iterdir()) if experiment_dir.exists() else []
    except OSError as error:
        raise UsageError(str(files.store_error(f"reading {experiment_dir}", error))) from error
    for entry in entries:
        if entry.name.startswith(".") or not _POINT.match(entry.name) or not entry.is_dir():
            continue
        try:
            points.append(load_point(entry))
        except StoreError as error:
            broken.append(error)
    return Scan(tuple(points), tuple(broken))


def load(experiment_dir: Path) -> list[StoredPoint]:
    """Every point of the folder. Raises the first StoreError met: use `scan` to have the others."""
    found = scan(experiment_dir)
    if found.broken:
        raise found.broken[0]
    return list(found.points)


def load_point(path: Path) -> StoredPoint:
    """Read one point folder, all but its samples. Raises StoreError naming the file at fault."""
    run = path / RUN
    data = _read_run(run)
    try:
        rows = data["rows"]
        samples = dict(rows[SAMPLES])
        point = StoredPoint(
            path=path,
            spec=RunSpec.from_json(data["spec"]),
            status=Status(data["status"]),
            reasons=tuple(data["reasons"]),
            hosts=int(data["hosts"]),
            elapsed_s=float(data["elapsed_s"]),
            flows=tables.read_rows(path / FLOWS, FlowRow, rows[FLOWS]),
            ports=tables.read_rows(path / PORTS, PortRow, rows[PORTS]),
            metrics={k: v for k, v in data["metrics"].items() if v is not None},
            provenance=data["provenance"],
            sample_rows=samples,
        )
    except StoreError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RefabricError) as error:
        raise StoreError(
            f"reading {run}: not the run.json of this version ({type(error).__name__}: {error}); "
            f"{tables.AGAIN}"
        ) from error
    for sample in (_sample_path(path, name) for name in samples):
        if not sample.is_file():
            raise StoreError(f"reading {sample}: No such file; {tables.AGAIN}")
    return point


def _read_run(run: Path) -> dict[str, Any]:
    try:
        data = json.loads(run.read_bytes())
    except OSError as error:
        raise StoreError(f"reading {run}: {error.strerror}; {tables.AGAIN}") from error
    except ValueError as error:
        raise StoreError(f"reading {run}: it is truncated or not JSON ({error}); {tables.AGAIN}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise StoreError(f"reading {run}: it was not written by refabric; {tables.AGAIN}")
    if data.get("schema") != SCHEMA:
        raise StoreError(
            f"reading {run}: its format is number {data.get('schema')}, this refabric reads {SCHEMA}; "
            f"use the version that wrote it, or {tables.AGAIN}"
        )
    return data


def _sample_path(point: Path, name: str) -> Path:
    return point / SAMPLES / f"{name}.csv.gz"


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

    def commit(self, result: RunResult, hosts: int, elapsed_s: float) -> StoredPoint:
        """Write the result and give the folder its name, replacing an older one. Raises StoreError."""
        folder = self.aside.path
        with files.storing(f"writing {self.target}"):
            (folder / SAMPLES).mkdir()
            for name, table in result.samples.items():
                files.write_bytes(_sample_path(folder, name), tables.table_bytes(table))
            files.write_bytes(folder / FLOWS, tables.rows_bytes(FlowRow, result.flows))
            files.write_bytes(folder / PORTS, tables.rows_bytes(PortRow, result.ports))
            files.write_bytes(folder / RUN, _run_bytes(self.spec, result, hosts, elapsed_s))
            files.publish(self.aside, self.target)
        return load_point(self.target)


def _run_bytes(spec: RunSpec, result: RunResult, hosts: int, elapsed_s: float) -> bytes:
    data = {
        "format": FORMAT,
        "schema": SCHEMA,
        "hash": spec.content_hash(),
        "spec": spec.to_json(),
        "status": result.status.value,
        "reasons": list(result.reasons),
        "hosts": hosts,
        "elapsed_s": round(elapsed_s, 3),
        "metrics": dict(result.metrics),
        "provenance": dict(result.provenance),
        "rows": {
            FLOWS: len(result.flows),
            PORTS: len(result.ports),
            SAMPLES: {name: len(table) for name, table in result.samples.items()},
        },
    }
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
