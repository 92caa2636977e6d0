"""Worker processes: the same results with any number of them, and the cost of a dead one."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from engines.engine import Observer
from engines.registry import make
from harness.baseline import is_baseline
from harness.execute import executors, sweep
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import SweepOutcome, SweepPosition
from harness.plan.jobs import Job, jobs_of
from harness.plan.machines import ThisMachine
from harness.results.point_results import PointResult
from harness.results.store import Store
from model.reasons import ENDED
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec
from tests.support.fake_engine import FakeEngine
from tests.support.recorded_progress import Recorder
from tests.support.stored_points import leftovers, simulated_files
from tests.support.waiting import until

SUBFLOWS = (1, 2, 4, 8)
ROOT = Path(__file__).resolve().parents[3]


def specs(engine: str = "fake") -> list[RunSpec]:
    tree = TopologySpec("fat_tree", {"k": 4})
    return [
        RunSpec(LinkSpec(5.0), tree, TransportSpec(n, "lia"), engine=engine, warmup_s=0.2, seconds=0.5)
        for n in SUBFLOWS
    ]


def run(
    results: Path,
    engine: FakeEngine,
    listener: Recorder,
    force: bool = False,
    asked: Sequence[RunSpec] | None = None,
) -> SweepOutcome:
    where, jobs = Store.open(results, "test"), jobs_of(asked or specs(), ThisMachine(engine))
    return sweep.run(jobs, partial(LocalExecutor, engine), where, where.read(), listener, force)


def with_four(spec: RunSpec) -> bool:
    return spec.transport.subflows == 4


class Deadly(FakeEngine):
    """Kills its own process at the point with 4 subflows."""

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        if with_four(spec):
            (raw / "half").write_text("written")
            os.kill(os.getpid(), signal.SIGKILL)
        observer.note(f"running {spec.transport.subflows}")
        return super().run(spec, observer, raw)


class Uneven(FakeEngine):
    """The point with 4 subflows needs as much memory as three others."""

    def memory_mb(self, spec: RunSpec) -> float:
        return 300.0 if with_four(spec) else 100.0


class Long(FakeEngine):
    """Expects a point to take as many seconds as it has subflows."""

    def expected_s(self, spec: RunSpec) -> float:
        return float(spec.transport.subflows)


@pytest.mark.parametrize(("at_once", "first"), [(2, 8), (1, 1)])
def test_the_longest_begin_first_where_others_run_beside_them(
    tmp_path: Path, at_once: int, first: int
) -> None:
    engine = Long(parallel=at_once)
    begun: list[int] = []

    class Starts(Recorder):
        def start(self, job: Job, place: SweepPosition) -> None:
            if not is_baseline(job.spec):  # percentages wait for the baseline: it goes first
                begun.append(job.spec.transport.subflows)
            super().start(job, place)

    assert run(tmp_path, engine, Starts()).exit_code == 0
    assert begun[0] == first
    assert begun == sorted(begun, reverse=at_once > 1)


def test_points_run_at_once_and_are_reported_in_plan_order(tmp_path: Path) -> None:
    listener = Recorder()
    outcome = run(tmp_path, FakeEngine(sleep_s=0.4, parallel=3), listener)
    assert outcome.exit_code == 0
    assert [point.spec.transport.subflows for point in outcome.points] == [1, *SUBFLOWS]
    assert [index for what, index in listener.events if what == "start"] == [1, 2, 3, 4, 5]
    assert sorted(index for what, index in listener.events if what == "ok") == [1, 2, 3, 4, 5]
    assert listener.events[:3] == [("start", 1), ("start", 2), ("start", 3)]
    assert listener.events[-1] == ("end", 0)
    assert leftovers(tmp_path) == []
    again = Recorder()
    assert run(tmp_path, FakeEngine(parallel=3), again).exit_code == 0
    assert again.events == [("end", 0)]


@pytest.mark.parametrize(("free_mb", "together"), [(1700.0, 4), (1000.0, 2), (100.0, 1)])
def test_no_more_points_at_once_than_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_mb: float, together: int
) -> None:
    monkeypatch.setattr(executors, "free_memory_mb", lambda: free_mb)
    listener = Recorder()
    outcome = run(tmp_path, FakeEngine(sleep_s=0.1, parallel=4, each_mb=400.0), listener)
    assert outcome.exit_code == 0
    running, most = 0, 0
    for what, _ in listener.events:
        running += {"start": 1, "ok": -1}.get(what, 0)
        most = max(most, running)
    assert most == together
    said = f"points need up to 400 MB each and {free_mb:.0f} MB are free: at most {together} of the largest"
    assert [note.startswith(said) for note in listener.notes] == ([True] if together < 4 else [])


def test_small_points_run_beside_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "free_memory_mb", lambda: 400.0)
    listener = Recorder()
    assert run(tmp_path, Uneven(sleep_s=0.1, parallel=5), listener).exit_code == 0
    assert [what for what, _ in listener.events[:3]] == ["start"] * 3
    assert listener.events[3][0] == "ok"  # before the fourth, which is the large one, there must be room
    assert "at most 2 of the largest" in listener.notes[0]


class Wide(FakeEngine):
    """The point with 4 subflows takes three CPUs."""

    def cpus(self, spec: RunSpec) -> int:
        return 3 if with_four(spec) else 1


@pytest.mark.parametrize(("cpus", "highest"), [(2, 3), (4, 4)])
def test_points_take_no_more_cpus_than_there_are_or_run_alone(
    tmp_path: Path, cpus: int, highest: int
) -> None:
    engine = Wide(sleep_s=0.2, parallel=cpus)
    taken: dict[int, int] = {}
    together: list[tuple[int, int]] = []

    class Loads(Recorder):
        def start(self, job: Job, place: SweepPosition) -> None:
            taken[place.index] = engine.cpus(job.spec)
            together.append((len(taken), sum(taken.values())))
            super().start(job, place)

        def finish(self, judged: PointResult, place: SweepPosition) -> None:
            del taken[place.index]
            super().finish(judged, place)

    assert run(tmp_path, engine, Loads()).exit_code == 0
    assert max(load for _, load in together) == highest
    assert all(points == 1 or load <= cpus for points, load in together)
    assert max(points for points, _ in together) >= 2


class Counting(FakeEngine):
    """Counts the estimates of memory, since each of them draws all flows of the point."""

    def __init__(self) -> None:
        super().__init__(sleep_s=0.05, parallel=2)
        self.asked: list[RunSpec] = []

    def memory_mb(self, spec: RunSpec) -> float:
        self.asked.append(spec)
        return super().memory_mb(spec)


def test_memory_is_estimated_once_for_all_seeds_of_a_point(tmp_path: Path) -> None:
    engine = Counting()
    seeds = [dataclasses.replace(spec, seed=seed) for seed in (1, 2, 3) for spec in specs()]
    assert run(tmp_path, engine, Recorder(), asked=seeds).exit_code == 0
    kinds = [spec.transport.subflows for spec in engine.asked if not is_baseline(spec)]
    assert sorted(kinds) == sorted(SUBFLOWS)


def test_one_dead_worker_costs_its_own_point(tmp_path: Path) -> None:
    listener = Recorder()
    outcome = run(tmp_path, Deadly(parallel=2), listener)
    assert outcome.exit_code == 1
    states = {point.spec.transport.subflows: point for point in outcome.points if not is_baseline(point.spec)}
    assert [states[n].status for n in SUBFLOWS] == [Status.OK, Status.OK, Status.FAILED, Status.OK]
    (reason,) = states[4].reasons
    assert reason.kind == ENDED
    assert re.match("its process died .SIGKILL.*run the same command again", reason.text)
    assert any(note.endswith(": running 8") for note in listener.notes)
    assert leftovers(tmp_path) == []
    mended = Recorder()
    assert run(tmp_path, FakeEngine(parallel=2), mended).exit_code == 0
    assert [what for what, _ in mended.events] == ["start", "ok", "end"]
    kept = run(tmp_path, Deadly(parallel=2), Recorder(), force=True)
    assert kept.exit_code == 1
    assert [point.status for point in kept.points] == [Status.OK] * 5  # the earlier result was kept
    assert len(kept.failures) == 1


def test_a_failed_point_does_not_sink_the_others(tmp_path: Path) -> None:
    outcome = run(tmp_path, FakeEngine(fail=with_four, parallel=2), Recorder())
    assert [point.status for point in outcome.points].count(Status.FAILED) == 1
    assert outcome.exit_code == 1


SIMULATE = ("--engine", "simulator", "--k", "4", "--subflows", "1,2,8", "--rate", "20", "--warmup", "0.2")

_UNDRAWN = """
from experiments.command import main
from harness.report import figures

figures.draw = lambda wanted: {each.figure.name: [] for each in wanted}
main()
"""


def simulate(results: Path, *more: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _UNDRAWN, "run", "cs244-one-to-one", *SIMULATE, "--seconds", "3",
         "--results", str(results), "--qmon", *more],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip


def test_results_are_the_same_bytes_however_they_were_made(tmp_path: Path) -> None:
    """Made by a sweep in worker processes, with another hash seed, and one by one in this process, which has
    run other simulations before."""
    first = simulate(tmp_path / "a")
    assert first.returncode == 0, first.stderr
    assert simulate(tmp_path / "b", hash_seed="1").returncode == 0
    here = Store.open(tmp_path / "c", "cs244-one-to-one")
    engine = make("simulator")
    made = {path.parent for path in (tmp_path / "a").rglob("run.json")}
    jobs = [
        dataclasses.replace(job, rate=Job(job.spec, lambda: 0.0).rate)
        for job in jobs_of(
            [RunSpec.from_json(json.loads((p / "run.json").read_text())["spec"]) for p in sorted(made)],
            ThisMachine(engine),
        )
    ]
    for job in jobs:
        assert sweep.run([job], partial(LocalExecutor, engine), here, here.read(), Recorder()).exit_code == 0
    one, two, three = (simulated_files(tmp_path / name) for name in "abc")
    assert len(one) >= 4 * 8
    assert one == two
    assert one == three
    for run_json in (path for path in one if path.endswith("run.json")):
        assert b"cpu_s" not in one[run_json]
        assert b"elapsed" not in one[run_json]


@pytest.mark.parametrize(
    ("number", "simulating"), [(signal.SIGTERM, True), (signal.SIGINT, True), (signal.SIGINT, False)]
)
def test_an_interrupted_sweep_ends_at_once_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, simulating: bool
) -> None:
    """Points of 3000 simulated seconds each; all processes are in one group, as in a terminal. The signal
    comes while workers simulate, or right after the baseline, when a worker may still be starting."""
    process = subprocess.Popen(
        [sys.executable, "-m", "refabric.command", "run", "cs244-one-to-one", *SIMULATE, "--seconds",
         "3000", "--results", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("[1/"):
            break
    if simulating:
        until(lambda: cpu_s_of_children(process.pid) > 1.2, 60.0, "workers simulate")
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait(timeout=30) == 130
    assert re.search(r"interrupted: [01] of", rest), "the baseline may be finished"
    assert "Traceback" not in rest
    assert leftovers(tmp_path / "cs244-one-to-one") == []
    kept = {path.name for path in (tmp_path / "cs244-one-to-one").glob("simulator-*")}
    assert all("-reference-" in name for name in kept), "only the short baseline can be finished"
    until(lambda: alive_in(process.pid) == [], 10.0, f"all processes end, not {alive_in(process.pid)}")


def cpu_s_of_children(pid: int) -> float:
    """Return the user CPU time of the running children of a process, in s."""
    ticks = 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            ticks += int(Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()[11])
    return ticks / os.sysconf("SC_CLK_TCK")


def alive_in(group: int) -> list[str]:
    """Return the names of the processes of a group, zombies left out."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(") ")
        except OSError:
            continue
        state, _, of_group, *_ = fields.split()
        if int(of_group) == group and state != "Z":
            found.append(name)
    return found


def test_a_worker_whose_parent_was_killed_ends_silently() -> None:
    """A parent that is killed with unread data leaves a reset connection instead of an end of file."""
    ours, theirs = socket.socketpair()
    theirs.send(b"unread")
    ours.close()
    program = "import sys; from harness.execute.executors import serve; serve(int(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(theirs.fileno())],
        pass_fds=[theirs.fileno()], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    theirs.close()
    assert (done.returncode, done.stderr) == (0, "")


_STOPPED_WHILE_STARTING = """
import os, signal, sys, time
from pathlib import Path
from tests.support.fake_engine import FakeEngine
from harness.execute.point import Task
from harness.execute.executors import Processes
from harness.results.store import Store
from tests.support.stored_points import spec_of

processes = Processes(1, FakeEngine(), Store.open(Path(sys.argv[1]), "e"))
next(processes.run([Task(spec_of())]))
(worker,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
end_s = time.monotonic() + 30
while "python" not in os.readlink(f"/proc/{worker}/exe") and time.monotonic() < end_s:
    pass
os.kill(int(worker), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_is_stopped_while_it_starts_ends_with_its_parent(tmp_path: Path) -> None:
    """By then only setpriv(1), not the worker, has asked the kernel to end it with its parent."""
    process = subprocess.Popen(
        [sys.executable, "-c", _STOPPED_WHILE_STARTING, str(tmp_path)], cwd=ROOT, start_new_session=True
    )
    try:
        assert process.wait(timeout=60) == -signal.SIGKILL
        until(lambda: alive_in(process.pid) == [], 10.0, f"the worker ends, not {alive_in(process.pid)}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
