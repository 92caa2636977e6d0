"""Reading a results folder (store.py): whole points, points by their run.json only, and damaged files."""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis import stats
from analysis.completion import Completions, completions
from common.errors import StoreError, UsageError
from common.printable import one_line
from engines.registry import LINUX_HOSTS, SIMULATOR, VIRTUAL_TIME
from harness.points.baseline import baseline_of, is_as_expected, is_baseline, off_by_arithmetic
from harness.results import notes as noting
from harness.results import stored_run, tables
from harness.results.attempts import Attempt
from harness.results.notes import Notes
from harness.results.numbers import Numbers
from harness.results.stored_run import FLOWS, PORTS, RUN, SAMPLES
from harness.results.tables import UnreadableError
from model.congestion import in_force
from model.reasons import Reason, blames_machine
from model.result import (
    CALL_COLUMNS,
    SAMPLE_COLUMNS,
    FlowRow,
    PortRow,
    Status,
    Table,
)
from model.rows import array
from model.spec import RunSpec, SamplingSpec
from model.transports import USUAL_ROUTING
from workloads import matrices

SUMMARY = "summary.csv"
RAW = "raw"
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
class Entry:
    """What a plan needs to know about a stored point.

    `finished`: a run may skip it. `machine_attempts` counts its runs if only the machine makes it suspect;
    it is 0 if another attempt would not help. For real hosts: the link rate in Mb/s, how it was chosen, and
    when the point was run (UTC, ISO 8601).
    """

    name: str
    finished: bool
    sampling: SamplingSpec
    machine_attempts: int = 0
    rate_mbps: float = 0.0
    rate_how: str = ""
    started_at: str = ""


@dataclass(frozen=True)
class StoredPoint:
    """One stored point. `hosts` counts the topology's hosts; `elapsed_s` is the wall time of the run.

    `sample` reads samples from disk when they are needed: a sweep with queue samples does not fit in memory.
    """

    path: Path
    spec: RunSpec
    status: Status
    reasons: tuple[Reason, ...]
    hosts: int
    elapsed_s: float
    flows: Sequence[FlowRow]
    ports: Sequence[PortRow]
    metrics: Mapping[str, float]
    provenance: Mapping[str, Any]
    sample_rows: Mapping[str, int] = field(default_factory=dict)
    cost: Collection[str] = ()
    """The names of metrics that are not of the result, but of the machine that computed it."""
    lost: tuple[str, ...] = ()
    """Samples that are in run.json but have no file any more; everything else can be used."""
    cautions: tuple[Reason, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    """All runs of this point in order (attempts.py); older points have none recorded."""
    seen: str = ""
    """What its files were when they were read (notes.py)."""
    noted: Numbers | None = None
    """Its numbers, if they were read before."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def finished(self) -> bool:
        """Whether a run may skip it. Points that failed or lost a file are repeated."""
        return self.status is not Status.FAILED and not self.lost

    @property
    def entry(self) -> Entry:
        how, began = str(self.provenance.get("rate_choice", "")), self.runs[-1].started_at
        rate_mbps, tries = self.spec.link.rate_mbps, self.machine_attempts
        return Entry(self.name, self.finished, self.spec.sampling, tries, rate_mbps, how, began)

    @functools.cached_property
    def settings(self) -> dict[Callable[[RunSpec], RunSpec], str]:
        """Texts of what it shares with other points, by the function that says what that is (verdicts.py)."""
        return {}

    @functools.cached_property
    def baseline_hash(self) -> str:
        """The hash of the baseline that its percentages refer to."""
        return baseline_of(self.spec).content_hash()

    @functools.cached_property
    def numbers(self) -> Numbers:
        """What tables show of its flows and ports."""
        return self.noted or Numbers.of(self.flows, self.ports)

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

    @functools.cached_property
    def machine_attempts(self) -> int:
        """The number of its runs if only the machine makes it suspect; 0 if another attempt would not help.

        Another attempt helps a baseline between real hosts that is suspect for any reason, or that is off its
        computed goodput."""
        return len(self.runs) if self._another_is_of_use else 0

    @property
    def _another_is_of_use(self) -> bool:
        machines = _is_machines_fault(self.status, self.reasons)
        if not is_baseline(self.spec):
            return machines
        if machines:
            return not self.is_arithmetic
        if self.status is Status.SUSPECT:
            return self.spec.engine not in VIRTUAL_TIME
        goodput = self.goodput_mbps.mean if self.goodput_mbps else None
        return self.status is Status.OK and bool(off_by_arithmetic(self.spec, goodput))

    @property
    def runs(self) -> tuple[Attempt, ...]:
        """Its attempts; an older point has none recorded, so its stored result counts as one."""
        goodput = self.goodput_mbps.mean if self.goodput_mbps else None
        return self.attempts or (Attempt(self.status, self.reasons, goodput, self.elapsed_s),)

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
            raise UnreadableError(path, f"it has no column {lacking[0]}; it is older or was edited", REMOVE)
        return table


@dataclass(frozen=True)
class Scan:
    """The usable points of a results folder, by name, and one error per damaged file."""

    directory: Path
    points: tuple[StoredPoint, ...]
    damaged: tuple[UnreadableError, ...]
    notes: Notes

    @property
    def broken(self) -> tuple[StoreError, ...]:
        """The errors for the user: many files with the same damage are one error."""
        return tuple(_grouped(self.directory, self.damaged))

    @property
    def lost_points(self) -> dict[str, UnreadableError]:
        """The damaged points that are not among `points`, with the errors of their files."""
        named = ((error.path.relative_to(self.directory).parts[0], error) for error in self.damaged)
        return {name: error for name, error in named if name not in {point.name for point in self.points}}

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(point.entry for point in self.points)

    def note(self) -> None:
        """Write the numbers of its points, for the next command. Raises StoreError."""
        if self.points:
            self.notes.write(self.points)

    def after(self, written: Mapping[str, StoredPoint]) -> Scan:
        """Return the content of the folder after these points were written, without reading it again."""
        points = {point.name: point for point in self.points} | dict(written)
        damaged = (
            error for error in self.damaged if error.path.relative_to(self.directory).parts[0] not in written
        )
        here = tuple(points[name] for name in sorted(points))
        return Scan(self.directory, here, tuple(damaged), self.notes)


def scan(experiment_dir: Path, known: Mapping[str, StoredPoint] | None = None) -> Scan:
    """Read every point of the folder and leave out damaged ones. A missing folder has no points.

    Points of `known` were read before and are not read again; those without a folder are left out. Raises
    UsageError if the folder itself cannot be read: the user chose it.
    """
    points: list[StoredPoint] = []
    broken: list[UnreadableError] = []
    notes = Notes.read(experiment_dir)
    with _collector_off():
        for entry in point_folders(experiment_dir):
            try:
                point = (known or {}).get(entry.name) or load_point(entry, notes)
                _check_name(point)
            except UnreadableError as error:
                broken.append(error)
                continue
            points.append(point)
            broken += (UnreadableError(sample_path(entry, name), "No such file") for name in point.lost)
    return Scan(experiment_dir, tuple(points), tuple(broken), notes)


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


def index(experiment_dir: Path) -> tuple[Entry, ...]:
    """Return the points by their run.json only: quick even if points have thousands of flows.

    Only `scan` checks the tables beside it. Raises UsageError as `scan` does.
    """
    entries, notes = [], Notes.read(experiment_dir)
    for folder in point_folders(experiment_dir):
        try:
            entries.append(_entry(folder, notes))
        except StoreError:
            continue  # a damaged point is not finished; `scan` reports it
    return tuple(entries)


def _entry(folder: Path, notes: Notes) -> Entry:
    run = stored_run.read(folder)
    spec, status = run.spec, run.status
    baseline = is_baseline(spec) and spec.engine not in VIRTUAL_TIME and status is not Status.FAILED
    if baseline or _is_machines_fault(status, run.reasons):
        return load_point(folder, notes).entry
    lost = any(_is_lost(sample_path(folder, name)) for name in run.sample_rows)
    return Entry(
        folder.name,
        status is not Status.FAILED and not lost,
        spec.sampling,
        rate_mbps=spec.link.rate_mbps,
        rate_how=str(run.provenance.get("rate_choice", "")),
        started_at=run.attempts[-1].started_at if run.attempts else "",
    )


def _is_machines_fault(status: Status, reasons: Sequence[Reason]) -> bool:
    """Whether only the machine makes a point suspect, so that another attempt may be ok."""
    return status is Status.SUSPECT and blames_machine(reasons)


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


def load_point(path: Path, notes: Notes | None = None) -> StoredPoint:
    """Read one point folder except its samples. Raises UnreadableError that names the file at fault.

    Flows and ports whose numbers are in the `notes` are read when they are asked for.
    """
    seen = _seen(path)
    noted = notes.of(path.name, seen) if notes else None
    run = stored_run.read(path)
    rows = tables.read_rows if noted is None else tables.StoredRows
    lost = tuple(name for name in run.sample_rows if _is_lost(sample_path(path, name)))
    point = StoredPoint(
        path=path,
        spec=run.spec,
        status=run.status,
        reasons=run.reasons,
        hosts=run.hosts,
        elapsed_s=run.elapsed_s,
        flows=rows(path / FLOWS, FlowRow, run.flow_rows),
        ports=rows(path / PORTS, PortRow, run.port_rows),
        metrics=run.metrics,
        provenance=run.provenance,
        sample_rows={name: count for name, count in run.sample_rows.items() if name not in lost},
        cost=run.cost,
        lost=lost,
        cautions=run.cautions,
        attempts=run.attempts,
        seen=seen,
        noted=noted,
    )
    if noted is None:
        _check(point)
    return point


def _seen(path: Path) -> str:
    """Return what the files of a point are. Raises UnreadableError."""
    try:
        return noting.seen(path)
    except OSError as error:
        raise UnreadableError.of(path, error) from error


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
    if point.attempts and all(each.status is not point.status for each in point.attempts):
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
