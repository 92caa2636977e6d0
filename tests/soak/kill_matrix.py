"""Kill or stop every kind of process in every phase of a run: what is left, and does the run complete?

    python tests/soak/kill_matrix.py [--kills 20] [--seed 1] [--skip 0] [--only PATTERN] [--json]

The cells of the matrix (which run, which process, which phase, which signal) are shuffled by the
seed and gone through in turn, without the first SKIP of them. SIGKILL: the run must end by itself. SIGSTOP:
after `--patience` the user gives up and kills the command. Then nothing may be left, the store must be
readable, and the same command must complete, leave no unfinished or failed point, and have the results of an
undisturbed run: the same files, points, flows, metrics and columns, and simulated tables byte by byte. A run
whose `refabric watch` is killed or stopped must not notice. All of it happens in namespaces of its own. Exit
code 1 when anything was wrong. Needs root.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import RefabricError, StoreError
from common.files import TMP_PREFIX
from common.privileges import ROOT
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from harness.results import store
from harness.results.point_results import PointResult
from harness.results.run_json import RUN
from model.reasons import AGENT, texts
from model.result import Status
from tests.support.dask_cluster import Lab
from tests.support.leftovers import apart, snapshot, wait_until_gone
from tests.support.scenarios.kills import children, command

CONTROLLER, WATCH = "outside controller", "watch"
MINE, PORTUS, HUB = "{home}/mine.py", "{home}/portus.py", ROOT / "tests/live/dataplanes/hub.py"
"""Files of a user: algorithms that the matrix writes, and a controller."""


@dataclass(frozen=True)
class Run:
    """A command: `refabric run EXPERIMENT OPTIONS`, and how many points it stores.

    `stored` is the folder of its results, `beside` the programs that the user has started before it. Without
    `repeats` its points may have other names the next time: their rate is measured.
    """

    experiment: str
    options: tuple[str, ...]
    points: int
    stored: str
    beside: tuple[str, ...] = ()
    times: tuple[str, ...] = ("--warmup", "0.5", "--seconds", "1")
    repeats: bool = True


def _cs244(options: str, points: int = 2, beside: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> Run:
    return Run("cs244-one-to-one", (*options.split(), *more), points, "cs244-one-to-one", beside)


def _ccp(algorithm: str) -> Run:
    options = ("--engine", "mininet", "--retry-suspect", "0", "--cc", algorithm)
    return Run("ccp-window", options, 1, "ccp")


_EMULATED = "--engine mininet --k 4 --subflows 1 --retry-suspect 0 --qmon"
_SIMULATED = "--engine simulator --k 4 --subflows 1,2,8 --rate 20"
_STAR = "--engine mininet --topology star,3 --subflows 1 --retry-suspect 0 --rate 1 --dataplane ovs"
_SIP = "sip:40:registrations=20:scale=20:arrivals=constant:policy=queue"
RUNS: dict[str, Run] = {
    "fabric": _cs244(f"{_EMULATED} --rate 2 --traffic iperf3"),
    "native": _cs244(f"{_EMULATED} --rate 2 --traffic native"),
    "ovs": _cs244(f"{_EMULATED} --rate 2 --dataplane ovs --traffic iperf3"),
    "calibrating": dataclasses.replace(_cs244(f"{_EMULATED} --rate auto"), repeats=False),
    "simulated": _cs244(_SIMULATED, 4),
    "cluster": _cs244(_SIMULATED, 4),
    "ims": Run(
        "ims-ladder",
        ("--engine", "mininet", "--retry-suspect", "0", "--seeds", "1", "--workload", _SIP),
        1, "ims", times=("--warmup", "0", "--seconds", "5"),
    ),
    "agent": _ccp("ccp:reno"),
    "mine": _ccp(MINE),
    "portus": _ccp(PORTUS),
    "cmd": _cs244(f"{_STAR} --controller", 2, more=(f"cmd:{{python}} {HUB} 6653",)),
    "remote": _cs244(f"{_STAR} --controller remote:{{port}}", 2, (CONTROLLER,)),
    "watched": _cs244(f"{_EMULATED} --rate 2", 2, (WATCH,)),
}  # fmt: skip
WORDS = {
    "host": "sleep infinity",
    "traffic": "iperf3",
    "controller": "controllers.openflow",
    "ovs-vswitchd": "ovs-vswitchd",
    "ovsdb-server": "ovsdb-server",
    "cluster worker": "dask worker",
    "SIP server": "kamailio",
    "SIP worker": "kamailio",
    "users": "/usr/bin/sipp",
    "HSS": "redis-server",
    "portus agent": "fake_agent.py",
    "own controller": "hub.py",
    "relay": "ovs.relay",
}
"""Words in the command line of each kind of process. A host is the process that holds its namespaces: its
shell starts only when somebody types. The core's threads and the controller of an IMS are the inner
process's. The first process of a SIP server starts the others; `SIP worker` is the one that started last."""
CHAIN = ("parent", "helper", "unshare", "init", "inner")
LIVELY = ("start", "network", "traffic", "collecting")
UP = LIVELY[1:]
BESIDE = (CONTROLLER, WATCH)
MISSED = (
    "traffic", "controller", "ovs-vswitchd", "ovsdb-server", "SIP server", "SIP worker", "users", "HSS",
    "agent", "portus agent", "own controller", "relay", CONTROLLER,
)  # fmt: skip
"""Programs whose end a point has to mention. Without its agent a flow goes on under Reno."""
WHEN = {
    "start": ("start", 0.5),
    "network": ("network", 0.5),
    "traffic": ("measure", 0.7),
    "collecting": ("collect", 0.3),
    "publishing": ("point", 0.4),
    "drawing": ("point", 2.0),
}
"""The progress event that begins a phase, and how long after it a signal may come, in seconds. Charts are
drawn after the last point. Points measure for a second, and may not notice what happens at its end."""


@dataclass(frozen=True)
class Cell:
    run: str
    role: str
    phase: str
    signal: str

    def __str__(self) -> str:
        return f"{self.run}: {self.signal} to {self.role} at {self.phase}"


Pair = tuple[str, str, str]


def _each(run: str, roles: Sequence[str], phases: Sequence[str]) -> list[Pair]:
    return [(run, role, phase) for role in roles for phase in phases]


def cells() -> list[Cell]:
    """Return all cells: a process must exist in its phase."""
    pairs = [
        *_each("fabric", CHAIN, LIVELY),
        *_each("fabric", ("host", "traffic"), ("traffic", "collecting")),
        *_each("native", ("parent", "inner", "host"), ("traffic",)),
        *_each("ovs", ("parent",), ("traffic",)),
        *_each("ovs", ("controller", "ovs-vswitchd", "ovsdb-server"), UP),
        *_each("ovs", ("inner",), UP),
        *_each("calibrating", CHAIN, ("calibration",)),
        *_each("simulated", ("worker", "parent"), ("start",)),
        *_each("cluster", ("cluster worker", "parent"), ("start",)),
        *((run, "parent", "publishing") for run in ("fabric", "simulated", "cluster")),
        *_each("ims", CHAIN, ("start", "network", "traffic")),  # it collects while it measures
        *_each("ims", ("SIP server", "SIP worker", "HSS"), ("network", "traffic")),
        *_each("ims", ("users",), ("traffic",)),
        *_each("agent", ("inner",), UP),
        *_each("agent", ("agent",), UP),
        *_each("mine", ("agent",), UP),
        *_each("portus", ("agent", "portus agent"), UP),
        *_each("cmd", ("own controller", "ovs-vswitchd"), UP),
        *_each("remote", (CONTROLLER, "parent"), LIVELY),
        *_each("remote", ("relay",), UP),
        *_each("simulated", ("worker", "parent"), ("drawing",)),
        *_each("watched", (WATCH,), (*LIVELY, "publishing", "drawing")),
        *_each("watched", ("parent",), ("traffic", "drawing")),
        *((run, "parent", "publishing") for run in ("ims", "agent", "cmd", "remote", "watched")),
    ]  # fmt: skip
    return [Cell(*pair, name) for pair in pairs for name in ("SIGKILL", "SIGSTOP")]


START_S = 30.0
ANSWER_S = 10.0


@dataclass
class Beside:
    """Running programs by name. `port` is the controller's, the same every time, as a user would have it."""

    results: Path
    port: int = 0
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    url: str = ""

    @contextlib.contextmanager
    def running(self, names: Sequence[str]) -> Iterator[None]:
        """Start these programs; end them in the end, in whatever state they are."""
        try:
            for name in names:
                first = self._start(name)
                if name == CONTROLLER:
                    self.port = int(first)
                else:
                    self.url = json.loads(first)["url"]
            yield
        finally:
            for process in self.processes.values():
                process.kill()
                process.communicate(timeout=START_S)
            self.processes.clear()

    def faults(self, killed: str) -> list[str]:
        """Return what is wrong with the programs that were not killed."""
        found = []
        for name, process in self.processes.items():
            if name != killed and process.poll() is not None:
                found.append(f"{name} ended with {process.returncode}")
            elif name != killed and name == WATCH:
                found += self._unserved()
        return found

    def _start(self, name: str) -> str:
        """Start a program; return its first line, which says that it listens."""
        self.results.mkdir(parents=True, exist_ok=True)
        watch = [str(Path(sys.executable).with_name("refabric")), "watch", str(self.results), "--json"]
        argv = [sys.executable, str(HUB), str(self.port)] if name == CONTROLLER else watch
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.processes[name] = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        line = process.stdout.readline() if ready else ""
        assert line, f"{name} did not start: {process.poll()}"
        return line

    def _unserved(self) -> list[str]:
        """Ask for the page and the list of points, as a browser would."""
        page, _, token = self.url.partition("?token=")
        asked = urllib.request.Request(f"{page}points", headers={"X-Refabric-Token": token})
        try:
            for request in (urllib.request.Request(self.url), asked):
                with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                    answer.read()
        except (OSError, urllib.error.URLError) as error:
            return [f"{WATCH} does not answer: {error}"]
        return []


def shape(directory: Path, rows: bool = True) -> dict[str, Any]:
    """Nested dictionaries of names, columns and row counts: equal for two runs of the same sweep.

    Samples leave zeros out and depend on the moment: only whether they have rows counts, and not without
    `rows`, as in a second nothing may happen.
    """
    found = store.scan(directory)
    return {
        "broken": [str(error) for error in found.broken],
        "unfinished": sorted(entry.name for entry in directory.glob(f"{TMP_PREFIX}*")),
        "points": {point.name: _point(point, rows) for point in found.points},
        "charts": sorted(path.name for path in (directory / "charts").iterdir()),
        "summary": _summary(directory / store.SUMMARY),
    }


def _point(point: PointResult, rows: bool) -> dict[str, Any]:
    run = json.loads((point.path / RUN).read_text())
    return {
        "finished": point.finished,
        "spec": run["spec"],
        "fields": sorted(run),
        "metrics": sorted(run.get("metrics", ())),
        "provenance": sorted(run.get("provenance", ())),
        "flows": [(flow.flow, flow.src, flow.dst, flow.sport, flow.dport) for flow in point.flows],
        "ports": [(port.port, port.node, port.peer) for port in point.ports],
        "samples": {name: _sample(point, name, rows) for name in point.samples},
        "files": sorted(str(path.relative_to(point.path)) for path in point.path.rglob("*")),
        "tables": _tables(point) if run["spec"]["engine"] == "simulator" else {},
    }


def _tables(point: PointResult) -> dict[str, str]:
    """Return a digest of each table, which the simulator writes byte by byte as before."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in point.path.glob("*.csv*")}


def _sample(point: PointResult, name: str, rows: bool) -> tuple[list[str], bool]:
    table = point.sample(name)
    return list(table.columns), rows and len(table) > 0


def _summary(path: Path) -> dict[str, Any]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file, strict=True)
        rows = list(reader)
    named = ("workload", "subflows", "seed", "hosts", "rate_mbps")
    whole = [all(row.get(name) for name in (*named, "status")) and _has_numbers(row) for row in rows]
    return {
        "columns": list(reader.fieldnames or ()),
        "rows": [{name: row.get(name) for name in named} for row in rows],
        "whole": whole,
    }


def _has_numbers(row: Mapping[str, str]) -> bool:
    """A point that failed, because one of its programs was killed for example, has none."""
    numbers = ("goodput_mbps_mean", "calls_offered_per_s")
    return any(row.get(name) for name in numbers) or row.get("status") == Status.FAILED


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """One line for each place where two shapes differ."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return [
            line
            for name in sorted({*expected, *found})
            for line in differences(expected.get(name), found.get(name), f"{where}/{name}")
        ]
    return [] if expected == found else [f"{where}: {found} instead of {expected}"]


def broken(directory: Path) -> list[str]:
    """Return what a killed sweep must not leave: points that are not whole, a summary that does not parse."""
    faults = [str(error) for error in store.scan(directory).broken]
    for point in store.scan(directory).points:
        for name in point.samples:
            try:
                point.sample(name)
            except StoreError as error:
                faults.append(str(error))
    try:
        whole = _summary(directory / store.SUMMARY)["whole"]
    except FileNotFoundError:
        whole = []
    except (OSError, ValueError, csv.Error) as error:
        return [*faults, f"reading {directory / store.SUMMARY}: {error}"]
    if not all(whole):
        faults.append(f"reading {directory / store.SUMMARY}: rows without numbers")
    return faults


def finished(directory: Path) -> list[str]:
    """Return the names of points that the same command does not run again."""
    return (
        [point.name for point in store.scan(directory).points if point.finished] if directory.is_dir() else []
    )


def unnoticed(directory: Path, before: Sequence[str]) -> list[str]:
    """Return what is wrong after a program was killed: the first point not in `before` must have failed, or
    be suspect because its agent has ended, and must say so without a traceback."""
    points = [point for point in store.scan(directory).points if point.name not in before]
    faults = [
        f"{point.name} failed with a traceback" for point in points if "Traceback" in texts(point.reasons)
    ]
    for point in sorted(points, key=lambda point: (point.path / RUN).stat().st_mtime)[:1]:
        if point.finished and not any(reason.kind == AGENT for reason in point.reasons):
            faults.append(
                f"{point.name} does not say that a program ended: {texts(point.reasons) or point.status}"
            )
    return faults


def lost_its_agent(directory: Path) -> bool:
    """Return whether a point says that its agent ended. It is finished, but unlike an undisturbed one."""
    return any(reason.kind == AGENT for point in store.scan(directory).points for reason in point.reasons)


def unfinished(directory: Path) -> list[str]:
    """Return what a completed command must not leave: files of dead runs, points that failed."""
    files = [path.name for pattern in (f"{TMP_PREFIX}*", ".old-*") for path in directory.rglob(pattern)]
    return sorted(files) + [
        f"{point.name}, which failed" for point in store.scan(directory).points if not point.finished
    ]


PATIENCE_S = 2.0
RUN_S = 240.0
"""The longest that a command may take, whatever is killed in it."""
GONE_S = 15.0
WORKER = ("--nthreads", "1")
ROLE_S = 20.0
ALGORITHMS = {
    "mine.py": """from ccp.algorithms.reno import Reno


class Mine(Reno):
    pass
""",
    "portus.py": """from ccp.portus import PortusAlgorithm


class Mine(PortusAlgorithm):
    command = {argv}
""",
}
"""Files of a user; `argv` starts an agent of portus."""


@dataclass
class Attempt:
    """A running command, and the progress that it has reported."""

    process: subprocess.Popen[bytes]
    log: Path
    seen: list[str] = field(default_factory=list)
    _text: bytes = b""

    def until(self, event: str, deadline_s: float, times: int = 1) -> bool:
        """Wait until a progress event has come so often; False if the command ended before."""
        assert self.process.stdout is not None
        end = time.monotonic() + deadline_s
        while self.seen.count(event) < times:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                return False
            *lines, self._text = (self._text + chunk).split(b"\n")
            self.seen += [
                each.get("phase", each["event"]) for each in map(json.loads, lines) if "event" in each
            ]
        return True

    def role(self, name: str) -> int | None:
        """Return the process of this kind once there is one, or None if there will be none."""
        end = time.monotonic() + ROLE_S
        while time.monotonic() < end and self.process.poll() is None:
            if (pid := self._find(name)) is not None:
                return pid
            time.sleep(0.01)
        return None

    def _find(self, name: str) -> int | None:
        if name in CHAIN:
            pids = [self.process.pid]
            for _ in range(CHAIN.index(name)):
                pids = [child for pid in pids[:1] for child in children(pid)]
            return pids[0] if pids else None
        if name == "worker":
            return next(iter(children(self.process.pid)), None)
        if name == "agent":
            inner = self._find("inner")
            forks = children(inner) if inner else []
            return next((pid for pid in forks if inner and command(pid) == command(inner)), None)
        found = [pid for pid in _pids() if WORDS[name] in command(pid)]
        return found[-1 if name == "SIP worker" else 0] if found else None

    def finish(self, deadline_s: float) -> int | None:
        """Return the exit code, or None if the command had to be killed."""
        try:
            self.process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a child that is left behind holds the pipe
                self.process.communicate(timeout=GONE_S)
            return None
        return self.process.returncode

    def give_up(self, patience_s: float) -> None:
        """Wait as long as a user would, then kill the command."""
        try:
            self.process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def words(self) -> str:
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-4:])


class Matrix:
    """One results folder per kind of run, kept over the kills: the same command goes on in it."""

    def __init__(self, request: dict[str, Any], home: Path, lab: Lab) -> None:
        self._request, self._home, self._lab = request, home, lab
        self._rng = random.Random(request["seed"] + request["skip"])
        self.killed: list[Cell] = []
        self._beside = {run: Beside(home / run / "results") for run in RUNS}
        self._undisturbed: dict[str, dict[str, Any]] = {}
        """The shapes of results that no signal has disturbed, by run."""
        agent = (sys.executable, str(ROOT / "tests/support/portus/fake_agent.py"), "/tmp/ccp/portus")
        for name, text in ALGORITHMS.items():
            (home / name).write_text(text.format(argv=agent))

    def start(self, run: str, into: str = "") -> Attempt:
        """Start the command with results and home in a folder `into`, which is the run's by default."""
        folder, chosen = self._home / (into or run), RUNS[run]
        (folder / "home").mkdir(parents=True, exist_ok=True)
        values = {"home": self._home, "python": sys.executable, "port": self._beside[run].port}
        argv = [str(Path(sys.executable).with_name("refabric")), "run", chosen.experiment, "--json"]
        argv += [option.format(**values) for option in chosen.options]
        argv += chosen.times
        argv += ["--results", str(folder / "results")]
        if run == "cluster":
            argv += ["--dask", self._lab.address, "--insecure"]
        env = {**os.environ, "HOME": str(folder / "home")}  # the measured rates are kept below it
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, env=env)
        return Attempt(process, folder / "log")

    def kill(self, cell: Cell) -> dict[str, Any]:
        """Kill once. `hit` is False if the process was gone before."""
        if self._is_complete(cell.run):
            shutil.rmtree(self._home / cell.run)
        self.killed.append(cell)
        before = snapshot()
        beside = self._beside[cell.run]
        stored = finished(self._stored(cell.run))
        with beside.running(RUNS[cell.run].beside):
            attempt = self.start(cell.run)
            event, spread_s = WHEN.get(cell.phase, ("", 2.0))
            times = max(1, RUNS[cell.run].points - len(stored)) if cell.phase == "drawing" else 1
            met = not event or attempt.until(event, RUN_S, times)
            pid = self._role(cell, attempt) if met else None
            time.sleep(self._rng.uniform(0.0, spread_s))
            faults = beside.faults("")
            hit = pid is not None and _signal(pid, cell.signal)
            faults += self._end(cell, attempt, hit) + beside.faults(cell.role if hit else "")
        if hit and cell.role in MISSED and cell.signal == "SIGKILL" and cell.phase in ("network", "traffic"):
            faults += unnoticed(self._stored(cell.run), stored)
        if cell.role == "cluster worker" and hit:
            self.renew_workers()
            before = {**before, "processes": snapshot()["processes"]}
        left = wait_until_gone(before, GONE_S)
        faults += [f"left behind: {line}" for line in left] + self._broken(cell.run)
        return {"cell": str(cell), "hit": hit, "faults": [f"{cell}: {fault}" for fault in faults]}

    def _role(self, cell: Cell, attempt: Attempt) -> int | None:
        if cell.role in BESIDE:
            return self._beside[cell.run].processes[cell.role].pid
        return attempt.role(cell.role)

    def _end(self, cell: Cell, attempt: Attempt, hit: bool) -> list[str]:
        undisturbed = cell.role == WATCH
        if cell.signal == "SIGSTOP" and hit and not undisturbed:
            attempt.give_up(self._request["patience"])
        code = attempt.finish(RUN_S)
        if code is None:
            return [f"did not end within {RUN_S:g} s: {attempt.words()}"]
        if "Traceback" in attempt.log.read_text(errors="replace"):
            return [f"ended with a traceback: {attempt.words()}"]
        if undisturbed and code not in (0, 1):
            return [f"ended with {code} because of a program that only watches: {attempt.words()}"]
        return []

    def complete(self, run: str) -> dict[str, Any]:
        """Run the same command again, undisturbed; report what was wrong."""
        faults = [f"{run}: {fault}" for fault in self._completion_faults(run)]
        return {"run": run, "faults": faults, "line": f"{run} completes: {faults or 'yes'}"}

    def _completion_faults(self, run: str) -> list[str]:
        with self._beside[run].running(RUNS[run].beside):
            attempt = self.start(run)
            code = attempt.finish(RUN_S)
            faults = self._broken(run) + self._beside[run].faults("")
        if code == 3 and "does not sustain" in attempt.words():
            return faults  # calibration says so where other programs keep the CPUs busy: an answer, no fault
        if code not in (0, 1):  # 1: suspect points, on a machine with other things to do
            faults.append(f"does not complete: exit code {code}: {attempt.words()}")
        if not self._is_complete(run):
            faults.append(f"is not complete in the end: {attempt.words()}")
        faults += [f"has left {name}" for name in unfinished(self._stored(run))]
        if not faults and RUNS[run].repeats and not lost_its_agent(self._stored(run)):
            found = differences(self._expected(run), shape(self._stored(run), rows=False))
            faults += [f"unlike an undisturbed run: {line}" for line in found]
        return faults

    def _expected(self, run: str) -> dict[str, Any]:
        if run not in self._undisturbed:
            folder = f"{run}-undisturbed"
            with self._beside[run].running(RUNS[run].beside):
                attempt = self.start(run, folder)
                code = attempt.finish(RUN_S)
            assert code in (0, 1), f"an undisturbed run ended with {code}: {attempt.words()}"
            self._undisturbed[run] = shape(self._stored(run, folder), rows=False)
        return self._undisturbed[run]

    def renew_workers(self) -> None:
        """Replace the Dask worker, which may have been stopped or killed."""
        self._lab.have()
        self._lab.have(WORKER)

    def _stored(self, run: str, into: str = "") -> Path:
        return self._home / (into or run) / "results" / RUNS[run].stored

    def _is_complete(self, run: str) -> bool:
        return len(list(self._stored(run).glob("*/run.json"))) == RUNS[run].points

    def _broken(self, run: str) -> list[str]:
        directory = self._stored(run)
        return broken(directory) if directory.exists() else []


def _signal(pid: int, name: str) -> bool:
    try:
        os.kill(pid, signal.Signals[name])
    except ProcessLookupError:
        return False
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


@contextlib.contextmanager
def _lab(home: Path, needed: bool) -> Iterator[Lab]:
    lab = Lab(home)
    try:
        if needed:
            lab.have(WORKER)
        yield lab
    finally:
        lab.stop()


def inside(inside: Inside) -> int:
    """In the sandbox: kills until there have been enough, then every command to its end."""
    apart()
    request = inside.request
    wanted = [cell for cell in cells() if re.search(request["only"], str(cell))]
    random.Random(request["seed"]).shuffle(wanted)
    home = Path(tempfile.mkdtemp(prefix="matrix-"))
    (home / "dask").mkdir()
    with _lab(home / "dask", any(cell.run == "cluster" for cell in wanted)) as lab:
        matrix = Matrix(request, home, lab)
        hits = tried = 0
        while hits < request["kills"] and tried < 2 * request["kills"] + 4:
            cell = wanted[(request["skip"] + tried) % len(wanted)]
            tried += 1
            report = matrix.kill(cell)
            hits += report["hit"]
            state = "; ".join(report["faults"]) or ("nothing left" if report["hit"] else "came too late")
            inside.report({**report, "line": f"kill {hits}/{request['kills']}: {cell}: {state}"})
            if cell.phase == "publishing" or tried % 10 == 0:
                inside.report(matrix.complete(cell.run))
        for run in sorted({cell.run for cell in matrix.killed}):
            inside.report(matrix.complete(run))
    return 0


def findings(seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of all kills."""
    kills = [report for report in seen if "cell" in report]
    return {
        "kills": sum(report["hit"] for report in kills),
        "came_too_late": sum(not report["hit"] for report in kills),
        "cells": sorted({report["cell"] for report in kills if report["hit"]}),
        "completed": sum(not report["faults"] for report in seen if "run" in report),
        "faults": [fault for report in seen for fault in report["faults"]],
    }


def go_through(
    kills: int, seed: int, only: str = "", skip: int = 0, patience: float = PATIENCE_S
) -> dict[str, Any]:
    """Kill and inspect, in private namespaces. Raises RefabricError."""
    seen: list[dict[str, Any]] = []

    def hear(report: dict[str, Any]) -> None:
        click.echo(report.pop("line"), err=True)
        seen.append(report)

    request = {"kills": kills, "seed": seed, "only": only, "skip": skip, "patience": patience}
    spawn_inside("tests.soak.kill_matrix:inside", request, deadline_s=600 + 120 * kills, on_report=hear)
    return findings(seen)


@click.command()
@click.option("--kills", default=20, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True)
@click.option("--skip", default=0, show_default=True, help="Leave out this many cells at the beginning.")
@click.option("--only", default="", metavar="PATTERN", help="Run only cells whose name contains PATTERN.")
@click.option("--patience", default=PATIENCE_S, show_default=True, help="Seconds from SIGSTOP to a kill.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(kills: int, seed: int, skip: int, only: str, patience: float, as_json: bool) -> None:
    """Go through the matrix and print what was found."""
    try:
        found = go_through(kills, seed, only, skip, patience)
    except RefabricError as error:
        click.echo(f"kill_matrix: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(json.dumps(found) if as_json else "\n".join(f"{name}: {found[name]}" for name in found))
    sys.exit(1 if found["faults"] else 0)


if __name__ == "__main__":
    main()
