"""The results on disk: results/<experiment>/<point>/{run.json, flows.csv, ports.csv, samples/*.csv.gz, raw/}.

Beside them stands origin.json where the same spec gives the same bytes on any machine: it has what does not.
A point folder appears whole (written aside, synced, renamed) or not at all. `run.json` carries a
schema number and promises the rows of every table beside it, so that a reader of any later day
knows what it has before it, and notices what is missing. A point is named by what a reader wants
to know and by the content hash of its spec: other parameters are another point.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import math
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from engines.algorithms import USUAL_ROUTING
from engines.completion import Completions, completions
from engines.congestion import in_force
from engines.result import SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table, under_test
from engines.spec import RunSpec, SamplingSpec
from experiments import files, stats, tables
from experiments.reference import reference_of
from experiments.tables import UnreadableError
from fabric.errors import HostUnfitError, RefabricError, StoreError, UsageError
from workloads import matrices

SCHEMA = 2
FORMAT = "refabric-run"
RUN, FLOWS, PORTS, SUMMARY = "run.json", "flows.csv", "ports.csv", "summary.csv"
ORIGIN = "origin.json"
"""What differs from machine to machine, where everything else is the same bytes on all."""
SAMPLES, RAW = "samples", "raw"
REMOVE = f"remove that file and {tables.AGAIN}"
"""Nobody looks into samples before a run: one that is there counts as whole."""
MOST_NAMED = 3
"""Files damaged in one way that are named one by one."""
_POINT = re.compile(r".+-[0-9a-f]{12}\Z")


def point_name(spec: RunSpec) -> str:
    """The point's folder: `k8-one_to_one-mptcp8-reno-5mbps-s1-<hash>`; engines but mininet lead the name."""
    topology = spec.topology
    size = f"{'k' if topology.kind == 'fat_tree' else topology.kind}{topology.k}"
    transport = spec.transport.name + (str(spec.transport.subflows) if spec.transport.subflows > 1 else "")
    workload = matrices.label(spec.workload.matrix, spec.workload.params)
    workload = workload.replace(":", "_").replace("=", "")
    cc = in_force(spec.transport.cc, spec.transport.subflows)
    routing = [] if spec.routing == USUAL_ROUTING else [spec.routing]
    parts = [size, workload, transport, cc, *routing, f"{spec.link.rate_mbps:g}mbps"]
    if spec.engine != "mininet":
        parts.insert(0, spec.engine)
    return "-".join([*parts, f"s{spec.seed}", spec.content_hash()])


@dataclass(frozen=True)
class Entry:
    """What a plan needs to know of a point: whether a run may skip it, and how it was sampled."""

    name: str
    finished: bool
    sampling: SamplingSpec


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
    lost: tuple[str, ...] = ()
    """Samples that run.json promises and that have no file any more: everything else can be used."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def finished(self) -> bool:
        """Whether a run may skip it: points that failed or lost a file are repeated."""
        return self.status is not Status.FAILED and not self.lost

    @property
    def entry(self) -> Entry:
        return Entry(self.name, self.finished, self.spec.sampling)

    @functools.cached_property
    def reference_hash(self) -> str:
        """Of the spec that its percentages refer to."""
        return reference_of(self.spec).content_hash()

    @functools.cached_property
    def goodputs_mbps(self) -> tuple[float, ...]:
        """Of the flows whose transport the point is about."""
        return tuple(flow.goodput_mbps for flow in under_test(self.flows))

    @functools.cached_property
    def goodput_mbps(self) -> stats.Spread | None:
        """How they spread, in Mb/s; None without flows."""
        return stats.spread(self.goodputs_mbps) if self.goodputs_mbps else None

    @functools.cached_property
    def jain(self) -> float | None:
        return stats.jain(self.goodputs_mbps) if self.goodputs_mbps else None

    @functools.cached_property
    def retransmits(self) -> int:
        return sum(flow.retransmits for flow in self.flows)

    @functools.cached_property
    def drops(self) -> int:
        """Packets dropped by all ports."""
        return sum(port.drops for port in self.ports)

    @functools.cached_property
    def completions(self) -> Completions:
        return completions(self.flows)

    def sample(self, name: str) -> Table:
        """The sample table called `name`. Raises StoreError when there is none or it is damaged."""
        if name not in self.sample_rows:
            have = ", ".join(sorted(self.sample_rows)) or "none"
            raise StoreError(f"reading {self.path}: no samples called {name}; it has: {have}")
        path = sample_path(self.path, name)
        try:
            table = tables.read_table(path, self.sample_rows[name])
        except UnreadableError as error:
            again = REMOVE if error.advice == tables.AGAIN else error.advice
            raise UnreadableError(path, error.what, again) from error
        lacking = [column for column in SAMPLE_COLUMNS.get(name, ()) if column not in table.columns]
        if lacking:
            raise UnreadableError(path, f"it has no column {lacking[0]}, it is older or was edited", REMOVE)
        return table


@dataclass(frozen=True)
class Scan:
    """What a results folder holds: points that can be used, and what is wrong with files in it.

    Many files damaged in one way are one error.
    """

    points: tuple[StoredPoint, ...]
    broken: tuple[StoreError, ...]


def scan(experiment_dir: Path) -> Scan:
    """Read every point of the folder; a damaged one costs itself alone. A missing folder has no points.

    Raises UsageError when the folder itself cannot be read: it is the one the user chose.
    """
    points: list[StoredPoint] = []
    broken: list[UnreadableError] = []
    with _collector_at_rest():
        for entry in _point_folders(experiment_dir):
            try:
                point = load_point(entry)
                _check_name(point)
            except UnreadableError as error:
                broken.append(error)
                continue
            points.append(point)
            broken += (UnreadableError(sample_path(entry, name), "No such file") for name in point.lost)
    return Scan(tuple(points), tuple(_gathered(experiment_dir, broken)))


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Rows are in no cycles, and looking for cycles among millions of them takes as long as reading them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def index(experiment_dir: Path) -> tuple[Entry, ...]:
    """The points by their run.json alone: quick, even where points have thousands of flows.

    Whether the tables beside it are whole is for `scan` to say. Raises UsageError as `scan` does.
    """
    entries = []
    for folder in _point_folders(experiment_dir):
        try:
            data = _read_run(folder / RUN)
            lost = any(_is_lost(sample_path(folder, name)) for name in data["rows"][SAMPLES])
            finished = Status(data["status"]) is not Status.FAILED and not lost
            entries.append(Entry(folder.name, finished, SamplingSpec(**data["spec"]["sampling"])))
        except (StoreError, KeyError, TypeError, ValueError):
            continue  # a damaged point is no finished one, and is named when it is scanned
    return tuple(entries)


def _point_folders(experiment_dir: Path) -> list[Path]:
    try:
        return [
            entry
            for entry in sorted(experiment_dir.iterdir())
            if not entry.name.startswith(".") and _POINT.match(entry.name) and entry.is_dir()
        ]
    except FileNotFoundError:
        return []
    except OSError as error:
        advice = "choose a results folder that you can read with --results DIR"
        raise UsageError(f"reading {experiment_dir}: {error.strerror}; {advice}") from error


def _check_name(point: StoredPoint) -> None:
    """A copy under another name would count twice. Raises UnreadableError."""
    if point.name != point_name(point.spec):
        raise UnreadableError(
            point.path / RUN,
            f"it is the result of {point_name(point.spec)}",
            "give the folder that name again, or move it out of here",
        )


def _gathered(experiment_dir: Path, broken: Sequence[UnreadableError]) -> Iterator[StoreError]:
    """The errors, those of more than a few files damaged in one way as one, where the first of them was."""
    alike: dict[tuple[str, str, str], list[UnreadableError]] = {}
    for error in broken:
        alike.setdefault(error.kind, []).append(error)
    for errors in alike.values():
        first = errors[0]
        if len(errors) <= MOST_NAMED:
            yield from errors
            continue
        named = first.path.relative_to(experiment_dir)
        yield StoreError(
            f"reading {experiment_dir}: {len(errors)} points have a {named.name} that cannot be used: "
            f"{named}: {first.what}, and so on; {first.advice}"
        )


def load(experiment_dir: Path) -> list[StoredPoint]:
    """Every point of the folder. Raises the first StoreError met: use `scan` to have the others."""
    found = scan(experiment_dir)
    if found.broken:
        raise found.broken[0]
    return list(found.points)


def load_point(path: Path) -> StoredPoint:
    """Read one point folder, all but its samples. Raises UnreadableError naming the file at fault."""
    run = path / RUN
    data = _read_run(run)
    if "provenance" not in data:
        data |= _read_run(path / ORIGIN)
    try:
        rows = data["rows"]
        lost = tuple(name for name in rows[SAMPLES] if _is_lost(sample_path(path, name)))
        spec = RunSpec.from_json(data["spec"])
        if data["hash"] != spec.content_hash():
            raise ValueError("its spec does not have its hash")
        point = StoredPoint(
            path=path,
            spec=spec,
            status=Status(data["status"]),
            reasons=_texts(data["reasons"]),
            hosts=int(data["hosts"]),
            elapsed_s=float(data["elapsed_s"]),
            flows=tables.read_rows(path / FLOWS, FlowRow, rows[FLOWS]),
            ports=tables.read_rows(path / PORTS, PortRow, rows[PORTS]),
            metrics=_numbers({**data["metrics"], **data.get("cost", {})}),
            provenance=dict(data["provenance"]),
            sample_rows={name: int(count) for name, count in rows[SAMPLES].items() if name not in lost},
            lost=lost,
        )
    except UnreadableError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RefabricError) as error:
        what = f"not the run.json of this version ({type(error).__name__}: {error})"
        raise UnreadableError(run, what) from error
    _check_goodput(point)
    return point


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}


def _is_lost(sample: Path) -> bool:
    try:
        return not sample.is_file()
    except OSError:
        return False  # it may be there: whoever reads it is told


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("reasons are no texts")
    return tuple(values)


def _check_goodput(point: StoredPoint) -> None:
    """No finished point was ever stored without (point.audited). Raises UnreadableError."""
    for flow in point.flows if point.status is not Status.FAILED else ():
        if not flow.goodput_mbps >= 0:
            raise UnreadableError(point.path / FLOWS, f"flow {flow.flow} has no goodput, it was edited")


def _read_run(run: Path) -> dict[str, Any]:
    try:
        data = json.loads(run.read_bytes(), parse_constant=_no_json)
    except OSError as error:
        raise UnreadableError.of(run, error) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(run, f"it is truncated or not JSON ({error})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UnreadableError(run, "it was not written by refabric")
    if data.get("schema") != SCHEMA:
        raise UnreadableError(
            run,
            f"its format is number {data.get('schema')}, this refabric reads {SCHEMA}",
            "use the version that wrote it, or move it away and run the experiment again",
        )
    return data


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def sample_path(point: Path, name: str) -> Path:
    """Where a point keeps its samples called `name`."""
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
                files.write_bytes(sample_path(folder, name), tables.table_bytes(table))
            files.write_bytes(folder / FLOWS, tables.rows_bytes(FlowRow, result.flows))
            files.write_bytes(folder / PORTS, tables.rows_bytes(PortRow, result.ports))
            origin = _origin(result, elapsed_s)
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
        "reasons": list(result.reasons),
        "hosts": hosts,
        "metrics": dict(result.metrics),
        "rows": {
            FLOWS: len(result.flows),
            PORTS: len(result.ports),
            SAMPLES: {name: len(table) for name, table in result.samples.items()},
        },
    }


def _origin(result: RunResult, elapsed_s: float) -> dict[str, Any]:
    return {"elapsed_s": round(elapsed_s, 3), "provenance": dict(result.provenance)}


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
