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
import functools
import gc
import json
import math
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis import stats
from analysis.completion import Completions, completions
from common import files, records, stored_json
from common.errors import StoreError, UsageError
from common.privileges import check_private
from common.text import one_line
from engines.registry import LINUX_HOSTS, SIMULATOR, VIRTUAL_TIME
from harness.baseline import baseline_of, is_as_expected, is_baseline, off_by_arithmetic
from harness.results import contents, run_json, tables
from harness.results.cache import PointNumbers, ResultsCache, fingerprint
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
    StoredRun,
    read_run,
)
from harness.results.tables import UnreadableError
from model.congestion import in_force
from model.reasons import blames_machine
from model.result import CALL_COLUMNS, SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table, array
from model.spec import RunSpec
from model.transports import USUAL_ROUTING
from workloads import matrices

SUMMARY = "summary.csv"

REMOVE = f"remove that file and {tables.AGAIN}"
"""No run reads the samples before it starts: a file that exists counts as whole."""
_ROUNDING = 1e-6
MAX_NAMED = 3
"""At most this many files with the same damage are named one by one."""
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
    routing = [] if spec.routing == USUAL_ROUTING else [spec.routing]
    parts = [size, workload, transport, cc, *routing, f"{spec.link.rate_mbps:g}mbps"]
    if spec.engine != "mininet":
        parts.insert(0, spec.engine)
    return "-".join([*parts, f"s{spec.seed}", spec.content_hash()])


@dataclass(frozen=True)
class StoredPoint(StoredRun):
    """One stored point: its run.json, and the tables beside it.

    `sample` reads samples from disk when they are needed: a sweep with queue samples does not fit in memory.
    """

    flows: Sequence[FlowRow] = ()
    ports: Sequence[PortRow] = ()
    lost: tuple[str, ...] = ()
    """Samples that are in run.json but have no file any more; everything else can be used."""
    fingerprint: str = ""
    """What its files were when they were read (cache.py)."""
    cached_numbers: PointNumbers | None = None

    @property
    def finished(self) -> bool:
        """Whether a run may skip it. Points that failed or lost a file are repeated."""
        return self.status is not Status.FAILED and not self.lost

    @property
    def rate_choice(self) -> str:
        """How the link rate of real hosts was chosen."""
        return str(self.provenance.get("rate_choice", ""))

    @functools.cached_property
    def settings(self) -> dict[Callable[[RunSpec], RunSpec], str]:
        """Texts of what it shares with other points, by the function that says what that is (claims.py)."""
        return {}

    @functools.cached_property
    def baseline_hash(self) -> str:
        """The hash of the baseline that its percentages refer to."""
        return baseline_of(self.spec).content_hash()

    @functools.cached_property
    def numbers(self) -> PointNumbers:
        """What tables show of its flows and ports."""
        return self.cached_numbers or PointNumbers.of(self.flows, self.ports)

    @property
    def goodput_mbps(self) -> stats.Spread | None:
        """The spread of the goodputs of the flows under test, in Mb/s; None without flows."""
        return self.numbers.goodput_mbps

    @property
    def jain(self) -> float | None:
        return self.numbers.jain

    @property
    def retransmits(self) -> int:
        return self.numbers.retransmits

    @property
    def drops(self) -> int:
        """The packets that all ports dropped."""
        return self.numbers.drops

    @property
    def completions(self) -> Completions:
        """Its completed flows, read anew by each call; `numbers` has what tables show of them."""
        return completions(self.flows)

    @functools.cached_property
    def only_transfers(self) -> bool:
        """Whether all its flows have a size and begin at times of their own, so that completion times are its
        results, not goodput."""
        return self.numbers.all_sized and not matrices.loops(self.spec.workload.matrix)

    @functools.cached_property
    def is_arithmetic(self) -> bool:
        """Whether its goodput is the computed one of an uncongested flow, as a baseline's should be."""
        return self.goodput_mbps is not None and is_as_expected(self.spec, self.goodput_mbps.mean)

    @property
    def only_machine_suspects(self) -> bool:
        """Whether only the machine makes it suspect, so that another attempt may be ok."""
        return self.status is Status.SUSPECT and blames_machine(self.reasons)

    @functools.cached_property
    def machine_attempts(self) -> int:
        """The number of its runs if only the machine makes it suspect; 0 if another attempt would not help.

        Another attempt helps a baseline between real hosts that is suspect for any reason, or that is off its
        computed goodput."""
        of_use = self.only_machine_suspects
        if is_baseline(self.spec):
            if of_use:
                of_use = not self.is_arithmetic
            elif self.status is Status.SUSPECT:
                of_use = self.spec.engine not in VIRTUAL_TIME
            elif self.status is Status.OK:
                goodput = self.goodput_mbps.mean if self.goodput_mbps else None
                of_use = bool(off_by_arithmetic(self.spec, goodput))
        return len(self.attempts) if of_use else 0

    def sample(self, name: str) -> Table:
        """Return the sample table called `name`. Raises StoreError if there is none or it is damaged."""
        if name not in self.sample_rows:
            have = ", ".join(sorted(self.sample_rows)) or "none"
            raise StoreError(f"reading {self.path}: no samples called {name}; it has: {have}")
        path = sample_path(self.path, name)
        try:
            table = tables.read_table(path, self.sample_rows[name])
        except UnreadableError as error:
            again = REMOVE if error.advice == tables.AGAIN else error.advice
            raise UnreadableError(path, error.what, again) from error
        lacking = [
            column
            for column in {**SAMPLE_COLUMNS, **CALL_COLUMNS}.get(name, ())
            if column not in table.columns
        ]
        if lacking:
            raise UnreadableError(path, f"it has no column {lacking[0]}; {ANOTHER_REVISION}", REMOVE)
        return table


def load_point(path: Path, cache: ResultsCache | None = None) -> StoredPoint:
    """Read one point folder except its samples. Raises UnreadableError that names the file at fault.

    Flows and ports whose numbers are in the `cache` are read when they are asked for.
    """
    try:
        files_now = fingerprint(path)
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    cached = cache.of(path.name, files_now) if cache else None
    point = _point(run_json.read(path), files_now, cached, lazily=cached is not None)
    if cached is None:
        _check(point)
    return point


def _point(
    run: StoredRun, fingerprint: str = "", cached: PointNumbers | None = None, *, lazily: bool
) -> StoredPoint:
    """Return the point of a run.json; its rows are read when they are asked for, or at once."""
    path, rows = run.path, tables.StoredRows if lazily else tables.read_rows
    lost = tuple(name for name in run.sample_rows if _is_lost(sample_path(path, name)))
    fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    fields["sample_rows"] = {name: count for name, count in run.sample_rows.items() if name not in lost}
    return StoredPoint(
        **fields,
        flows=rows(path / FLOWS, FlowRow, run.flow_rows),
        ports=rows(path / PORTS, PortRow, run.port_rows),
        lost=lost,
        fingerprint=fingerprint,
        cached_numbers=cached,
    )


def _is_lost(sample: Path) -> bool:
    try:
        return not sample.is_file()
    except OSError:
        return False  # it may exist: reading it raises the error


def _check(point: StoredPoint) -> None:
    """Raise UnreadableError for a point whose files contradict each other: refabric never wrote them so."""
    contradiction = _status_contradiction(point)
    if contradiction:
        raise UnreadableError(point.path / RUN, f"{contradiction}; it was edited")
    if point.status is Status.FAILED:
        return
    for file, contradiction in ((FLOWS, _goodput_contradiction(point)), *_total_contradictions(point)):
        if contradiction:
            raise UnreadableError(point.path / file, f"{contradiction}; it was edited")


def _status_contradiction(point: StoredPoint) -> str:
    """Say how the status differs from the reasons or from the recorded attempts; empty if it does not."""
    if point.status is not Status.OK and not point.reasons:
        return f"its status is {point.status}, without a reason"
    if point.status is Status.OK and point.reasons:
        return "its status is ok, with a reason for doubt"
    if all(each.status is not point.status for each in point.attempts):
        return f"its status is {point.status}, but no attempt ended so"
    return ""


def _goodput_contradiction(point: StoredPoint) -> str:
    """Say which goodput is not that of the bytes in the window; empty if all are.

    The window of Linux hosts has the length that was measured, the same for all flows; then the mean goodput
    of the recorded attempts tells whether all flows were edited alike.
    """
    goodput = array(point.flows, "goodput_mbps").astype(float)
    received = array(point.flows, "bytes_received").astype(float)
    lacking = ~(goodput >= 0)
    if lacking.any():
        return f"flow {point.flows[int(lacking.argmax())].flow} has no goodput"
    window_s = point.spec.seconds
    if point.spec.engine in LINUX_HOSTS and goodput.any():
        window_s = float(np.median(8e-6 * received[goodput > 0] / goodput[goodput > 0]))
    bytes_of_goodput = goodput * window_s / 8e-6
    off = np.abs(bytes_of_goodput - received) > 1 + _ROUNDING * received
    if off.any():
        which = int(off.argmax())
        flow = point.flows[which]
        return (
            f"flow {flow.flow} has a goodput of {flow.goodput_mbps:.6g} Mb/s, but its {flow.bytes_received} "
            f"bytes in {window_s:.6g} s are {8e-6 * flow.bytes_received / window_s:.6g} Mb/s"
        )
    known = [each.goodput_mbps for each in point.attempts if each.goodput_mbps is not None]
    mean = point.goodput_mbps.mean if point.goodput_mbps else None
    if known and mean is not None and not any(math.isclose(mean, of, rel_tol=_ROUNDING) for of in known):
        return f"its mean goodput is {mean:.6g} Mb/s, but the run's was {known[-1]:.6g} Mb/s"
    return ""


def _total_contradictions(point: StoredPoint) -> Iterator[tuple[str, str]]:
    """Yield for each table what its rows add up to, if that is not the total in run.json; else an empty text.

    Readings of Linux hosts' ports and of their totals are not of the same instant, so only the totals of
    flows are compared there.
    """
    totals: list[tuple[str, Sequence[Any], str]] = [(FLOWS, point.flows, "retransmits")]
    if point.spec.engine == SIMULATOR:
        totals += [(PORTS, point.ports, name) for name in ("drops", "lost", "marked")]
    for file, rows, name in totals:
        total, found = point.metrics.get(name), int(array(rows, name).sum())
        differs = total is not None and len(rows) > 0 and total != found
        yield file, f"its rows have {found} {name}, run.json {total:g}" if differs else ""


def sample_path(point: Path, name: str) -> Path:
    """Return the path of the point's samples called `name`."""
    return point / SAMPLES / f"{name}.csv.gz"


@dataclass(frozen=True)
class Scan:
    """The usable points of a results folder, by name, and one error per damaged file."""

    directory: Path
    points: tuple[StoredPoint, ...]
    damaged: tuple[UnreadableError, ...]
    cache: ResultsCache

    @property
    def broken(self) -> tuple[StoreError, ...]:
        """The errors for the user: many files with the same damage are one error."""
        return tuple(_grouped(self.directory, self.damaged))

    @property
    def lost_points(self) -> dict[str, UnreadableError]:
        """The damaged points that are not among `points`, with the errors of their files."""
        named = ((error.path.relative_to(self.directory).parts[0], error) for error in self.damaged)
        return {name: error for name, error in named if name not in {point.name for point in self.points}}

    def write_cache(self) -> None:
        """Write the numbers of its points, for the next command. Raises StoreError."""
        if self.points:
            self.cache.write(self.points)

    def after(self, written: Mapping[str, StoredPoint]) -> Scan:
        """Return the content of the folder after these points were written, without reading it again."""
        points = {point.name: point for point in self.points} | dict(written)
        damaged = (
            error for error in self.damaged if error.path.relative_to(self.directory).parts[0] not in written
        )
        here = tuple(points[name] for name in sorted(points))
        return Scan(self.directory, here, tuple(damaged), self.cache)


def scan(experiment_dir: Path, known: Mapping[str, StoredPoint] | None = None) -> Scan:
    """Read every point of the folder and leave out damaged ones. A missing folder has no points.

    Points of `known` were read before and are not read again; those without a folder are left out. Raises
    UsageError if the folder itself cannot be read: the user chose it.
    """
    points: list[StoredPoint] = []
    broken: list[UnreadableError] = []
    cache = ResultsCache.read(experiment_dir)
    with _collector_off():
        for entry in point_folders(experiment_dir):
            try:
                point = (known or {}).get(entry.name) or load_point(entry, cache)
                _check_name(point)
            except UnreadableError as error:
                broken.append(error)
                continue
            points.append(point)
            broken += (UnreadableError(sample_path(entry, name), "No such file") for name in point.lost)
    return Scan(experiment_dir, tuple(points), tuple(broken), cache)


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Switch the cyclic garbage collector off: rows form no cycles, and with millions of them the search for
    cycles takes as long as reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def index(experiment_dir: Path) -> tuple[StoredPoint, ...]:
    """Return the points by their run.json only: quick even if points have thousands of flows.

    Only `scan` checks the tables beside it, which are read when they are asked for. Raises UsageError as
    `scan` does.
    """
    points, cache = [], ResultsCache.read(experiment_dir)
    for folder in point_folders(experiment_dir):
        try:
            point = _point(run_json.read(folder), lazily=True)
            baseline = is_baseline(point.spec) and point.spec.engine not in VIRTUAL_TIME
            if point.only_machine_suspects or (baseline and point.status is not Status.FAILED):
                point = load_point(folder, cache)  # its goodput says whether another attempt helps
        except StoreError:
            continue  # a damaged point is not finished; `scan` reports it
        points.append(point)
    return tuple(points)


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


def _check_name(point: StoredPoint) -> None:
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


def load(experiment_dir: Path) -> list[StoredPoint]:
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
        for name, about in contents.walk(point):
            if stat.S_ISREG(about.st_mode):
                with contents.open_below(point, name) as file:
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
        data = records.mapping(stored_json.loads(files.read_bytes(path, MAX_MANIFEST_BYTES)), "the manifest")
        if data["format"] != MANIFEST_FORMAT or data["schema"] != MANIFEST_SCHEMA:
            raise ValueError("another format")
        names = data["points"]
        if not isinstance(names, list):
            raise ValueError("points are not a list")
        return frozenset(records.text(name, "a point") for name in names)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"reading {path}: it is damaged or not a file of refabric ({error}); "
            "run the figure again, its finished points are kept"
        ) from error


def _manifest_path(directory: Path, figure: str) -> Path:
    return directory / MANIFESTS / f"{figure}.json"
