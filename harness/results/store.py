"""The results on disk: results/<experiment>/<point>/{run.json, flows.csv, ports.csv, samples/*.csv.gz, raw/}.

For an engine that gives the same bytes on any machine, origin.json holds the provenance and everything else
that differs between machines. A point's folder appears whole (written aside, synced, renamed) or not at all.
`run.json` has a schema number and the number of rows of every table, so that a later reader knows the format
and notices missing rows. A point's name has its main settings and the content hash of its spec: other
parameters make another point.

Where figures share a folder, a manifest of each (figures/<figure>.json) has the names of its points.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import re
import secrets
import stat
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from analysis import stats
from analysis.completion import completions, percentile
from common import files, stored_json
from common.errors import RefabricError, StoreError, UsageError
from common.privileges import check_private
from common.text import one_line
from engines.registry import STEADY_STATE
from harness.results import tables
from harness.results.point_results import PointResult
from harness.results.run_json import (
    ANOTHER_REVISION,
    FLOWS,
    FORMAT,
    PORTS,
    PROVENANCE,
    RAW,
    RUN,
    SAMPLES,
    SCHEMA,
    Attempt,
    check_known,
    read_run,
    sample_path,
)
from harness.results.tables import Content, UnreadableError
from model.congestion import in_force
from model.reasons import Reason
from model.result import UDP, FlowRow, PortRow, RunResult, Status, array, distinct, under_test
from model.spec import RunSpec
from model.transports import USUAL_ROUTING
from workloads import matrices

SUMMARY = "summary.csv"
MAX_NAMED = 3
"""At most this many files with the same damage are named one by one."""
MAX_NAMED_BYTES = 180
"""Bytes of what is readable in the name of a point's folder; the hash distinguishes longer ones."""
MAX_WORKLOAD_CHARS = 100
"""Longest workload in the name of a point's folder; the hash distinguishes longer ones."""
_POINT = re.compile(r".+-[0-9a-f]{12}\Z", re.DOTALL)


def point_name(spec: RunSpec) -> str:
    """Return the name of the point's folder: `k8-one_to_one-mptcp8-reno-5mbps-s1-<hash>`. Engines other than
    mininet come first in it."""
    topology = spec.topology
    size = f"{'k' if topology.kind == 'fat_tree' else topology.kind}{topology.k}"
    if name := topology.params.get("name"):
        size = f"{topology.kind}_{name}"
    transport = spec.transport.name + (str(spec.transport.subflows) if spec.transport.subflows > 1 else "")
    workload = matrices.label(spec.workload.matrix, spec.workload.params)
    workload = workload.replace(":", "_").replace("=", "")[:MAX_WORKLOAD_CHARS]
    cc = in_force(spec.transport.cc, spec.transport.subflows)
    routing = [] if spec.routing == USUAL_ROUTING else [spec.routing.replace(":", "")]
    parts = [size, workload, transport, cc, *routing, f"{spec.link.rate_mbps:g}mbps"]
    if spec.engine != "mininet":
        parts.insert(0, spec.engine)
    # The hash tells long names apart; a folder's name has 255 bytes, and an unfinished one has more in it.
    named = "-".join(parts).encode()[:MAX_NAMED_BYTES].decode(errors="ignore")
    return f"{named}-s{spec.seed}-{spec.content_hash()}"


_SAMPLE = re.compile(rf"{SAMPLES}/([a-z0-9_]{{1,64}})\.csv\.gz")
_LISTS = ("stalled_attempts", "path_manager_errors")
_Numbers = dict[str, int | float | None]


class _Run(msgspec.Struct):
    """The types of a run.json, beside its spec."""

    tables: dict[str, Content]
    metrics: _Numbers
    readings: _Numbers
    provenance: dict[str, Any]
    status: Status
    reasons: list[dict[str, Any]]
    cautions: list[dict[str, Any]]
    attempts: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    hosts: Annotated[int, msgspec.Meta(ge=0)]
    elapsed_s: Annotated[float, msgspec.Meta(ge=0)]
    cost: _Numbers = {}


def load_point(folder: Path) -> PointResult:
    """Read the run.json of a point's folder; its tables are looked at, and read when they are asked for.

    Raises UnreadableError that names the file at fault.
    """
    path = folder / RUN
    data, digest = _read(folder)
    try:
        typed = msgspec.convert(data, _Run)
        point = _point(folder, data, typed, digest)
    except KeyError as error:
        raise UnreadableError(path, f"{ANOTHER_REVISION} ({error} is missing)") from error
    except (TypeError, ValueError, AttributeError, OverflowError, RefabricError) as error:
        raise UnreadableError(path, f"{ANOTHER_REVISION} ({error})") from error
    if contradiction := _status_contradiction(point):
        raise UnreadableError(path, f"{contradiction}; it was edited")
    written_ns = path.stat().st_ctime_ns
    for file in (FLOWS, PORTS):
        tables.check(folder / file, typed.tables[file], written_ns)
    return point


def _read(folder: Path) -> tuple[dict[str, Any], str]:
    """Return a point's run.json, with its origin.json, and the digest of both without readings.

    Raises UnreadableError.
    """
    data = read_run(folder / RUN)
    if "provenance" not in data:
        data |= read_run(folder / PROVENANCE)
    counted = {name: value for name, value in data.items() if name != "readings"}
    return data, hashlib.sha256(msgspec.json.encode(counted, order="sorted")).hexdigest()


def _point(folder: Path, data: Mapping[str, Any], typed: _Run, digest: str) -> PointResult:
    """Return the point of a run.json: every value has its type, every name is known here.

    Raises many errors for other data.
    """
    spec = RunSpec.from_json(data["spec"])
    if data["hash"] != spec.content_hash():
        raise ValueError("its spec does not have its hash")
    check_known(spec)
    stored = dict(typed.tables)
    flows, ports = stored.pop(FLOWS), stored.pop(PORTS)
    names = {file: _SAMPLE.fullmatch(file) for file in stored}
    samples = {named[1]: stored[file] for file, named in names.items() if named}
    if len(samples) < len(stored):
        raise ValueError("tables has an impossible name")
    lost = tuple(name for name in samples if _is_lost(sample_path(folder, name)))
    for name in _LISTS:
        msgspec.convert(typed.provenance.get(name, []), list[Any])
    return PointResult(
        path=folder,
        spec=spec,
        status=typed.status,
        reasons=tuple(map(Reason.from_json, typed.reasons)),
        cautions=tuple(map(Reason.from_json, typed.cautions)),
        hosts=typed.hosts,
        elapsed_s=typed.elapsed_s,
        metrics={name: of for name, of in {**typed.metrics, **typed.cost}.items() if of is not None},
        cost=frozenset(typed.cost),
        provenance=typed.provenance,
        attempts=tuple(map(Attempt.from_json, typed.attempts)),
        flows=tables.StoredRows(folder / FLOWS, FlowRow, flows),
        ports=tables.StoredRows(folder / PORTS, PortRow, ports),
        samples={name: content for name, content in samples.items() if name not in lost},
        lost=lost,
        digest=digest,
        readings=typed.readings,
        stored_readings=len(typed.readings),
    )


def _is_lost(sample: Path) -> bool:
    try:
        return not sample.is_file()
    except OSError:
        return False  # it may exist: reading it raises the error


def _status_contradiction(point: PointResult) -> str:
    """Say how the status differs from the reasons or from the recorded attempts; empty if it does not."""
    if point.status is not Status.OK and not point.reasons:
        return f"its status is {point.status}, without a reason"
    if point.status is Status.OK and point.reasons:
        return "its status is ok, with a reason for doubt"
    if all(each.status is not point.status for each in point.attempts):
        return f"its status is {point.status}, but no attempt ended so"
    return ""


@dataclass(frozen=True)
class Scan:
    """The usable points of a results folder, by name, and one error per damaged file."""

    directory: Path
    points: tuple[PointResult, ...]
    damaged: tuple[UnreadableError, ...]

    @property
    def broken(self) -> tuple[StoreError, ...]:
        """The errors for the user: many files with the same damage are one error."""
        return tuple(_grouped(self.directory, self.damaged))

    @property
    def lost_points(self) -> dict[str, UnreadableError]:
        """The damaged points that are not among `points`, with the errors of their files."""
        named = ((error.path.relative_to(self.directory).parts[0], error) for error in self.damaged)
        return {name: error for name, error in named if name not in {point.name for point in self.points}}

    def after(self, written: Mapping[str, PointResult]) -> Scan:
        """Return the content of the folder after these points were written, without reading it again."""
        points = {point.name: point for point in self.points} | dict(written)
        damaged = (
            error for error in self.damaged if error.path.relative_to(self.directory).parts[0] not in written
        )
        here = tuple(points[name] for name in sorted(points))
        return Scan(self.directory, here, tuple(damaged))


def scan(experiment_dir: Path) -> Scan:
    """Read every point of the folder and leave out damaged ones. A missing folder has no points.

    Raises UsageError if the folder itself cannot be read: the user chose it.
    """
    points: list[PointResult] = []
    broken: list[UnreadableError] = []
    for entry in point_folders(experiment_dir):
        try:
            point = load_point(entry)
            _check_name(point)
        except UnreadableError as error:
            broken.append(error)
            continue
        points.append(point)
        broken += (UnreadableError(sample_path(entry, name), "No such file") for name in point.lost)
    return Scan(experiment_dir, tuple(points), tuple(broken))


def is_point_name(name: str) -> bool:
    """Return whether a folder of this name can hold a point."""
    return not name.startswith(".") and _POINT.match(name) is not None


def point_folders(experiment_dir: Path) -> list[Path]:
    """Return the folders of points. Raises UsageError."""
    try:
        return [
            entry
            for entry in sorted(experiment_dir.iterdir())
            if is_point_name(entry.name) and entry.is_dir()
        ]
    except FileNotFoundError:
        return []
    except OSError as error:
        advice = "choose a results folder that you can read with --results DIR"
        raise UsageError(f"reading {experiment_dir}: {error.strerror}; {advice}") from error


def _check_name(point: PointResult) -> None:
    """Raise UnreadableError for a copy under another name, which would count twice."""
    if point.name != point_name(point.spec):
        raise UnreadableError(
            point.path / RUN,
            f"it is the result of {point_name(point.spec)}",
            "give the folder that name again, or move it out of here",
        )


def _grouped(experiment_dir: Path, broken: Iterable[UnreadableError]) -> Iterator[StoreError]:
    """Yield the errors; more than MAX_NAMED files with the same damage are one error."""
    alike: dict[tuple[str, str, str], list[UnreadableError]] = {}
    for error in broken:
        alike.setdefault(error.kind, []).append(error)
    for errors in alike.values():
        first = errors[0]
        if len(errors) <= MAX_NAMED:
            yield from errors
            continue
        where, named = one_line(str(experiment_dir)), first.path.relative_to(experiment_dir)
        yield StoreError(
            f"reading {where}: {len(errors)} points have a {named.name} that cannot be used: "
            f"{one_line(str(named))}: {first.what}, and so on; {first.advice}"
        )


def load(experiment_dir: Path) -> list[PointResult]:
    """Read every point of the folder. Raises the first StoreError; `scan` returns all of them."""
    found = scan(experiment_dir)
    if found.broken:
        raise found.broken[0]
    return list(found.points)


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

    def read(self) -> Scan:
        """Read every point of the folder, as `scan` does."""
        return scan(self.directory)

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

    def note_attempt(self, point: PointResult, attempt: Attempt) -> PointResult:
        """Add an attempt that does not count to a stored point. Raises StoreError."""
        path = point.path / RUN
        data = read_run(path)
        if "provenance" not in data:
            path = point.path / PROVENANCE
            data = read_run(path)
        data["attempts"] = [each.to_json() for each in (*point.attempts, attempt)]
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
        self, result: RunResult, hosts: int, elapsed_s: float, attempts: Sequence[Attempt]
    ) -> PointResult:
        """Write the result and rename the folder to its final name, replacing an older one.

        `attempts` are all attempts at this point, this one included. Raises StoreError.
        """
        folder = self.aside.path
        with files.storing(f"writing {self.target}"):
            (folder / SAMPLES).mkdir()
            stored = {}
            for name, table in result.samples.items():
                path, text = sample_path(folder, name), tables.table_bytes(table)
                files.write_bytes(path, tables.packed(text))
                stored[f"{SAMPLES}/{path.name}"] = Content.of(len(table), text)
            for name, kind, rows in ((FLOWS, FlowRow, result.flows), (PORTS, PortRow, result.ports)):
                text = tables.rows_bytes(kind, rows)
                files.write_bytes(folder / name, text)
                stored[name] = Content.of(len(rows), text)
            provenance = _provenance(result, elapsed_s, attempts)
            run = _run(self.spec, result, hosts, stored)
            if result.reproducible:
                files.write_bytes(folder / PROVENANCE, _json_bytes({**provenance, "cost": dict(result.cost)}))
            else:
                run |= provenance
            files.write_bytes(folder / RUN, _json_bytes(run))
            files.publish(self.aside, self.target.name)
        return load_point(self.target)

    def adopt(self, packed: Mapping[str, bytes]) -> PointResult:
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


def store_readings(points: Iterable[PointResult]) -> list[str]:
    """Add to run.json what was read off points' tables since they were stored; return the points' names.

    A point without all its samples keeps none: they may come back. Nor does one that another run replaced
    in the meantime: these are readings of its earlier rows. Raises StoreError.
    """
    new = [point for point in points if len(point.readings) > point.stored_readings and not point.lost]
    new = [point for point in new if _read(point.path)[1] == point.digest]
    for point in new:
        path = point.path / RUN
        readings = {name: point.readings[name] for name in sorted(point.readings)}
        text = _json_bytes({**read_run(path), "readings": readings})
        files.replace_file(path, text, beside=point.path.parent)
    return [point.name for point in new]


def _is_below(name: str) -> bool:
    """Whether a path leads to a place below the folder that it is relative to."""
    parts = name.split("/")
    return "\0" not in name and not {"", ".", ".."}.intersection(parts)


def pack(point: Path) -> dict[str, bytes]:
    """Return the content of every file of a point's folder, by its path in the folder. Raises StoreError."""
    packed = {}
    with files.storing(f"reading {point}"):
        for name, about in files.walk(point):
            if stat.S_ISREG(about.st_mode):
                with files.open_below(point, name) as file:
                    packed[name] = file.read()
    return packed


def _run(spec: RunSpec, result: RunResult, hosts: int, stored: Mapping[str, Content]) -> dict[str, Any]:
    of_rows = {} if result.status is Status.FAILED else row_metrics(spec, result.flows, result.ports)
    return {
        "hash": spec.content_hash(),
        "spec": spec.to_json(),
        "status": result.status.value,
        "reasons": [reason.to_json() for reason in result.reasons],
        "cautions": [caution.to_json() for caution in result.cautions],
        "hosts": hosts,
        "metrics": {**result.metrics, **of_rows},
        "readings": {},
        "tables": {file: dataclasses.asdict(content) for file, content in stored.items()},
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


MANIFESTS = "figures"
MANIFEST_FORMAT, MANIFEST_SCHEMA = "refabric-figure", 1
MAX_MANIFEST_BYTES = 1 << 26


def add_to_manifest(directory: Path, figure: str, points: Iterable[str], tag: str = "") -> None:
    """Add names of points to the manifest of `figure`; replace a damaged manifest. Raises StoreError.

    If two runs add points at the same time, neither loses those of the other.
    """
    path = _manifest_path(directory, figure)

    def added() -> bytes | None:
        try:
            before = read_manifest(directory, figure)
        except StoreError:
            before = frozenset()
        after = before.union(points)
        data = {"format": MANIFEST_FORMAT, "schema": MANIFEST_SCHEMA, "points": sorted(after)}
        return None if after == before else (json.dumps(data, indent=1) + "\n").encode()

    with files.storing(f"creating {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.update_file(path, added, tag)


def read_manifest(directory: Path, figure: str) -> frozenset[str]:
    """Return the names of all points that runs of `figure` had here. Raises StoreError for a damaged file."""
    path = _manifest_path(directory, figure)
    try:
        data = msgspec.convert(stored_json.loads(files.read_bytes(path, MAX_MANIFEST_BYTES)), dict[str, Any])
        if data["format"] != MANIFEST_FORMAT or data["schema"] != MANIFEST_SCHEMA:
            raise ValueError("another format")
        return msgspec.convert(data["points"], frozenset[str])
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"reading {path}: it is damaged or not a file of refabric ({error}); "
            "run the figure again, its finished points are kept"
        ) from error


def _manifest_path(directory: Path, figure: str) -> Path:
    return directory / MANIFESTS / f"{figure}.json"


def row_metrics(spec: RunSpec, flows: Sequence[FlowRow], ports: Sequence[PortRow]) -> dict[str, float]:
    """Return the metrics of a point's flows and ports, which are computed once, when the point is stored;
    those that it does not have are missing.

    Goodput and Jain's index are of the flows under test, retransmits and drops of all flows and ports;
    completions are of sized flows that started in the measured window (`fct_ms`, `slowdown`), and
    `flows_sized` counts all flows with a size. `constant` are flows of constant rate.
    """
    found: dict[str, float] = {}
    if goodputs_mbps := array(under_test(flows), "goodput_mbps").tolist():
        spread = stats.spread(goodputs_mbps)
        found |= {
            "goodput_mbps_mean": spread.mean,
            "goodput_mbps_min": spread.minimum,
            "goodput_mbps_median": spread.median,
            "goodput_mbps_max": spread.maximum,
            "jain": stats.jain(goodputs_mbps),
            **_completions(flows),
            **_constant_rate(flows),
        }
    if spec.engine not in STEADY_STATE:  # there are no packets
        found |= {"retransmits": int(array(flows, "retransmits").sum())} if flows else {}
        found |= {"drops": int(array(ports, "drops").sum())} if ports else {}
    return found


def _completions(flows: Sequence[FlowRow]) -> dict[str, float]:
    of = completions(flows)
    if not of.started:
        return {}
    found: dict[str, float] = {
        "flows_started": of.started,
        "flows_completed": len(of.completed),
        "flows_sized": int((array(flows, "size_bytes") != 0).sum()),
    }
    if took_ms := of.took_ms:
        mean = statistics.fmean(took_ms)
        found["fct_ms_mean"], found["fct_ms_median"] = mean, statistics.median(took_ms)
        found["fct_ms_p99"] = percentile(took_ms, 99)
        found["fct_variation_pct"] = 100 * statistics.pstdev(took_ms) / mean if mean else 0.0
    if slowdowns := of.slowdowns:
        found["slowdown_mean"], found["slowdown_p99"] = statistics.fmean(slowdowns), percentile(slowdowns, 99)
    return found


def _constant_rate(flows: Sequence[FlowRow]) -> dict[str, float]:
    if UDP not in distinct(flows, "transport"):
        return {}
    constant = [flow for flow in flows if flow.transport == UDP]
    return {
        "constant_flows": len(constant),
        "constant_rate_mbps_min": min(flow.rate_mbps for flow in constant),
        "constant_rate_mbps_max": max(flow.rate_mbps for flow in constant),
        "constant_sent_pkts": sum(flow.sent_pkts for flow in constant),
        "constant_lost_pkts": sum(flow.lost_pkts for flow in constant),
    }
