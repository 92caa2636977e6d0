"""Points in processes of their own: the same results in any number of them, and what becomes of dead ones."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from engines.engine import Observer
from engines.fake import FakeEngine
from engines.registry import make
from harness.execute import sweep, workers
from harness.execute.machines import ThisMachine
from harness.execute.sweep import Job, Outcome, Place
from harness.plan.baseline import is_reference
from harness.results.store import PROVENANCE, Store
from harness.results.summary import Judged
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec
from tests.support.stored_points import leftovers

SUBFLOWS = (1, 2, 4, 8)
ROOT = Path(__file__).resolve().parents[2]


class Listener:
    """What a sweep told, in its order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.notes: list[str] = []

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        del jobs, pending

    def start(self, job: Job, place: Place) -> None:
        self.told.append(("start", place.index))
        assert job.expected_s > 0

    def phase(self, name: str, seconds: float) -> None:
        del name, seconds

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self, judged: Judged, place: Place) -> None:
        self.told.append((judged.status.value, place.index))
        assert place.eta_s >= 0

    def end(self) -> None:
        self.told.append(("end", 0))


def specs(engine: str = "fake") -> list[RunSpec]:
    return [
        RunSpec(
            LinkSpec(5.0),
            TopologySpec("fat_tree", {"k": 4}),
            TransportSpec(subflows, "lia"),
            engine=engine,
            warmup_s=0.2,
            seconds=0.5,
        )
        for subflows in SUBFLOWS
    ]


def run(results: Path, engine: FakeEngine, listener: Listener, force: bool = False) -> Outcome:
    where = Store.open(results, "test")
    return sweep.run(sweep.plan(specs(), engine), ThisMachine(engine).executor, where, listener, force)


def with_four(spec: RunSpec) -> bool:
    return spec.transport.subflows == 4


class Deadly(FakeEngine):
    """Its process is killed at the point with 4 subflows."""

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        if with_four(spec):
            (raw / "half").write_text("written")
            os.kill(os.getpid(), signal.SIGKILL)
        observer.note(f"running {spec.transport.subflows}")
        return super().run(spec, observer, raw)


class Uneven(FakeEngine):
    """The point with 4 subflows takes what three others take together."""

    def memory_mb(self, spec: RunSpec) -> float:
        return 300.0 if with_four(spec) else 100.0


class Long(FakeEngine):
    """More subflows, more time."""

    def expected_s(self, spec: RunSpec) -> float:
        return float(spec.transport.subflows)


@pytest.mark.parametrize(("at_once", "first"), [(2, 8), (1, 1)])
def test_the_longest_begin_first_where_others_run_beside_them(
    tmp_path: Path, at_once: int, first: int
) -> None:
    engine = Long(parallel=at_once)
    begun: list[int] = []

    class Order(Listener):
        def start(self, job: Job, place: Place) -> None:
            if not is_reference(job.spec):  # percentages wait for the baseline: it goes first
                begun.append(job.spec.transport.subflows)
            super().start(job, place)

    assert run(tmp_path, engine, Order()).exit_code == 0
    assert begun[0] == first
    assert begun == sorted(begun, reverse=at_once > 1)


def test_points_run_at_once_and_are_told_in_the_plans_order(tmp_path: Path) -> None:
    listener = Listener()
    began = time.monotonic()
    outcome = run(tmp_path, FakeEngine(sleep_s=0.4, parallel=3), listener)
    assert time.monotonic() - began > 0.4
    assert outcome.exit_code == 0
    assert [point.spec.transport.subflows for point in outcome.points] == [1, *SUBFLOWS]
    assert [index for what, index in listener.told if what == "start"] == [1, 2, 3, 4, 5]
    assert sorted(index for what, index in listener.told if what == "ok") == [1, 2, 3, 4, 5]
    assert listener.told[:3] == [("start", 1), ("start", 2), ("start", 3)]
    assert listener.told[-1] == ("end", 0)
    assert leftovers(tmp_path) == []
    again = Listener()
    assert run(tmp_path, FakeEngine(parallel=3), again).exit_code == 0
    assert again.told == [("end", 0)]


@pytest.mark.parametrize(("free_mb", "together"), [(1700.0, 4), (1000.0, 2), (100.0, 1)])
def test_no_more_points_at_once_than_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_mb: float, together: int
) -> None:
    monkeypatch.setattr(workers, "free_memory_mb", lambda: free_mb)
    listener = Listener()
    outcome = run(tmp_path, FakeEngine(sleep_s=0.1, parallel=4, each_mb=400.0), listener)
    assert outcome.exit_code == 0
    running, most = 0, 0
    for what, _ in listener.told:
        running += {"start": 1, "ok": -1}.get(what, 0)
        most = max(most, running)
    assert most == together
    said = f"points need up to 400 MB each and {free_mb:.0f} MB are free: at most {together} of the largest"
    assert [note.startswith(said) for note in listener.notes] == ([True] if together < 4 else [])


def test_small_points_run_beside_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "free_memory_mb", lambda: 400.0)
    listener = Listener()
    assert run(tmp_path, Uneven(sleep_s=0.1, parallel=5), listener).exit_code == 0
    assert [what for what, _ in listener.told[:3]] == ["start"] * 3
    assert listener.told[3][0] == "ok"  # before the fourth, which is the large one, there must be room
    assert "at most 2 of the largest" in listener.notes[0]


def test_one_dead_worker_costs_its_own_point(tmp_path: Path) -> None:
    listener = Listener()
    outcome = run(tmp_path, Deadly(parallel=2), listener)
    assert outcome.exit_code == 1
    states = {
        point.spec.transport.subflows: point for point in outcome.points if not is_reference(point.spec)
    }
    assert [states[n].status for n in SUBFLOWS] == [Status.OK, Status.OK, Status.FAILED, Status.OK]
    (reason,) = states[4].reasons
    assert re.match("its process died .SIGKILL.*run the same command again", reason.text)
    assert any(note.endswith(": running 8") for note in listener.notes)
    assert leftovers(tmp_path) == []
    mended = Listener()
    assert run(tmp_path, FakeEngine(parallel=2), mended).exit_code == 0
    assert [what for what, _ in mended.told] == ["start", "ok", "end"]
    kept = run(tmp_path, Deadly(parallel=2), Listener(), force=True)
    assert kept.exit_code == 1
    assert [point.status for point in kept.points] == [Status.OK] * 5  # the earlier result was kept
    assert len(kept.failures) == 1


def test_a_failed_point_does_not_sink_the_others(tmp_path: Path) -> None:
    outcome = run(tmp_path, FakeEngine(fail=with_four, parallel=2), Listener())
    assert [point.status for point in outcome.points].count(Status.FAILED) == 1
    assert outcome.exit_code == 1


SIMULATE = ("--engine", "simulator", "--k", "4", "--subflows", "1,2,8", "--rate", "20", "--warmup", "0.2")


def files_of(results: Path) -> dict[str, bytes]:
    """Everything in the points' folders but where they were made."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("simulator-*/**/*"))
        if path.is_file() and path.name != PROVENANCE
    }


def simulate(results: Path, *more: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments.command", "run", "cs244-one-to-one", *SIMULATE, "--seconds",
         "0.5", "--results", str(results), "--qmon", *more],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip


def test_results_are_the_same_bytes_however_they_were_made(tmp_path: Path) -> None:
    """By a sweep in processes of their own, with other hash seeds, and one by one in this process, which
    simulates something else as well."""
    first = simulate(tmp_path / "a")
    assert first.returncode == 0, first.stderr
    assert simulate(tmp_path / "b", hash_seed="1").returncode == 0
    here = Store.open(tmp_path / "c", "cs244-one-to-one")
    engine = make("simulator")
    made = {path.parent for path in (tmp_path / "a").rglob("run.json")}
    jobs = [
        dataclasses.replace(job, rate=sweep.Job(job.spec, 0.0).rate)
        for job in sweep.plan(
            [RunSpec.from_json(json.loads((p / "run.json").read_text())["spec"]) for p in sorted(made)],
            engine,
        )
    ]
    for job in jobs:
        assert sweep.run([job], ThisMachine(engine).executor, here, Listener()).exit_code == 0
    one, two, three = (files_of(tmp_path / name) for name in "abc")
    assert len(one) >= 4 * 8
    assert one == two
    assert one == three
    for run_json in (path for path in one if path.endswith("run.json")):
        assert b"cpu_s" not in one[run_json]
        assert b"elapsed" not in one[run_json]


@pytest.mark.parametrize(
    ("number", "after_s"), [(signal.SIGTERM, 1.0), (signal.SIGINT, 1.0), (signal.SIGINT, 0.0)]
)
def test_an_interrupted_sweep_ends_at_once_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, after_s: float
) -> None:
    """Points of 3000 simulated seconds each; all processes are of one group, as in a terminal. A worker that
    has only just been started does not hear Ctrl-C either."""
    # What is started in the background ignores SIGINT, and whatever it starts in turn.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.command", "run", "cs244-one-to-one", *SIMULATE, "--seconds",
         "3000", "--results", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("[2/"):
            break
    time.sleep(after_s)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait(timeout=30) == 130
    assert re.search(r"interrupted: [01] of", rest), "the reference may be finished"
    assert "Traceback" not in rest
    assert leftovers(tmp_path / "cs244-one-to-one") == []
    kept = {path.name for path in (tmp_path / "cs244-one-to-one").glob("simulator-*")}
    assert all("-reference-" in name for name in kept), "the one that ends at once"
    deadline = time.monotonic() + 10
    while (left := alive_in(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def alive_in(group: int) -> list[str]:
    """Names of the processes of a group but those that only wait to be reaped."""
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
