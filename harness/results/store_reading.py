"""Reading what a results folder holds (store.py): points, whole or by their run.json alone, and damage."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from analysis import stats
from analysis.completion import Completions, completions
from common.errors import RefabricError, StoreError, UsageError
from engines.registry import VIRTUAL_TIME
from harness.execute.attempts import Attempt
from harness.plan.baseline import MATRIX, is_as_expected, is_reference, off_by_arithmetic, reference_of
from harness.results import tables
from harness.results.tables import UnreadableError
from model.congestion import in_force
from model.reasons import Reason, blames_machine
from model.result import (
    SAMPLE_COLUMNS,
    FlowRow,
    PortRow,
    Status,
    Table,
    under_test,
)
from model.spec import RunSpec, SamplingSpec
from model.transports import USUAL_ROUTING
from workloads import matrices

SCHEMA = 2
FORMAT = "refabric-run"
RUN, FLOWS, PORTS, SUMMARY = "run.json", "flows.csv", "ports.csv", "summary.csv"
PROVENANCE = "origin.json"
"""What differs from machine to machine, where everything else is the same bytes on all."""
SAMPLES, RAW = "samples", "raw"
REMOVE = f"remove that file and {tables.AGAIN}"
"""Nobody looks into samples before a run: one that is there counts as whole."""
MAX_NAMED = 3
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
    """What a plan needs to know of a point: whether a run may skip it, how it was sampled, how often it was
    run where the machine alone makes it suspect (0 where another attempt is of no use), and, between real
    hosts, its link rate, how that was chosen, and when it was run (UTC, ISO 8601)."""

    name: str
    finished: bool
    sampling: SamplingSpec
    machine_attempts: int = 0
    rate_mbps: float = 0.0
    rate_how: str = ""
    started_at: str = ""


@dataclass(frozen=True)
class StoredPoint:
    """One point read back. `hosts` counts the topology's hosts; `elapsed_s` is the wall time it took.

    Samples stay on disk until `sample` asks: a sweep with queue samples does not fit in memory.
    """

    path: Path
    spec: RunSpec
    status: Status
    reasons: tuple[Reason, ...]
    hosts: int
    elapsed_s: float
    flows: tuple[FlowRow, ...]
    ports: tuple[PortRow, ...]
    metrics: Mapping[str, float]
    provenance: Mapping[str, Any]
    sample_rows: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    """Samples that run.json promises and that have no file any more: everything else can be used."""
    cautions: tuple[Reason, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    """Every run of this point, in turn (attempts.py); older points have none recorded."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def finished(self) -> bool:
        """Whether a run may skip it: points that failed or lost a file are repeated."""
        return self.status is not Status.FAILED and not self.lost

    @property
    def entry(self) -> Entry:
        how, began = str(self.provenance.get("rate_choice", "")), self.runs[-1].started_at
        rate_mbps, tries = self.spec.link.rate_mbps, self.machine_attempts
        return Entry(self.name, self.finished, self.spec.sampling, tries, rate_mbps, how, began)

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

    @functools.cached_property
    def is_arithmetic(self) -> bool:
        """Whether its goodput is that of one uncongested flow, as computed: then a baseline is right."""
        return self.goodput_mbps is not None and is_as_expected(self.spec, self.goodput_mbps.mean)

    @functools.cached_property
    def machine_attempts(self) -> int:
        """How often it was run, where the machine alone makes it suspect; 0 where another attempt is of no
        use. Of baselines between real hosts another one is, whatever made them suspect, and where they are
        not what they are computed to be."""
        return len(self.runs) if self._another_is_of_use else 0

    @property
    def _another_is_of_use(self) -> bool:
        machines = _is_machines_fault(self.status, self.reasons)
        if not is_reference(self.spec):
            return machines
        if machines:
            return not self.is_arithmetic
        if self.status is Status.SUSPECT:
            return self.spec.engine not in VIRTUAL_TIME
        goodput = self.goodput_mbps.mean if self.goodput_mbps else None
        return self.status is Status.OK and bool(off_by_arithmetic(self.spec, goodput))

    @property
    def runs(self) -> tuple[Attempt, ...]:
        """Its attempts; of an older point, which has none recorded, what is stored."""
        goodput = self.goodput_mbps.mean if self.goodput_mbps else None
        return self.attempts or (Attempt(self.status, self.reasons, goodput, self.elapsed_s),)

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
            entries.append(_entry(folder))
        except (StoreError, KeyError, TypeError, ValueError):
            continue  # a damaged point is no finished one, and is named when it is scanned
    return tuple(entries)


def _entry(folder: Path) -> Entry:
    data = read_run(folder / RUN)
    status = Status(data["status"])
    matrix, engine = data["spec"]["workload"]["matrix"], data["spec"]["engine"]
    baseline = matrix == MATRIX and engine not in VIRTUAL_TIME and status is not Status.FAILED
    if baseline or _is_machines_fault(status, _reasons(data["reasons"])):
        return load_point(folder).entry
    lost = any(_is_lost(sample_path(folder, name)) for name in data["rows"][SAMPLES])
    finished = status is not Status.FAILED and not lost
    return Entry(
        folder.name,
        finished,
        SamplingSpec(**data["spec"]["sampling"]),
        rate_mbps=float(data["spec"]["link"]["rate_mbps"]),
        rate_how=str(data.get("provenance", {}).get("rate_choice", "")),
        started_at=str([{}, *data.get("attempts", [])][-1].get("started_at", "")),
    )


def _is_machines_fault(status: Status, reasons: Sequence[Reason]) -> bool:
    """Whether another attempt may do better."""
    return status is Status.SUSPECT and blames_machine(reasons)


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
        if len(errors) <= MAX_NAMED:
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
    data = read_run(run)
    if "provenance" not in data:
        data |= read_run(path / PROVENANCE)
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
            reasons=_reasons(data["reasons"]),
            hosts=int(data["hosts"]),
            elapsed_s=float(data["elapsed_s"]),
            flows=tables.read_rows(path / FLOWS, FlowRow, rows[FLOWS]),
            ports=tables.read_rows(path / PORTS, PortRow, rows[PORTS]),
            metrics=_numbers({**data["metrics"], **data.get("cost", {})}),
            provenance=dict(data["provenance"]),
            sample_rows={name: int(count) for name, count in rows[SAMPLES].items() if name not in lost},
            lost=lost,
            cautions=_reasons(data.get("cautions", [])),
            attempts=tuple(map(Attempt.from_json, data.get("attempts", []))),
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


def _reasons(values: object) -> tuple[Reason, ...]:
    """Stored reasons; texts are those of older versions. Raises ValueError, TypeError."""
    if not isinstance(values, list):
        raise TypeError("reasons are no list")
    return tuple(map(Reason.from_json, values))


def _check_goodput(point: StoredPoint) -> None:
    """No finished point was ever stored without (point.audited). Raises UnreadableError."""
    for flow in point.flows if point.status is not Status.FAILED else ():
        if not flow.goodput_mbps >= 0:
            raise UnreadableError(point.path / FLOWS, f"flow {flow.flow} has no goodput, it was edited")


def read_run(run: Path) -> dict[str, Any]:
    """The run.json of this version there. Raises UnreadableError."""
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
