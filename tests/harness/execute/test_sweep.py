"""The sweep: order, resume, force, failures that cost one point, interruptions that cost none."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from ccp.names import OwnAlgorithm
from common import files
from common.errors import BusyError, HostUnfitError, StoreError
from engines.engine import Observer
from harness.execute import sweep
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import SweepOutcome
from harness.metrics import summary_csv
from harness.plan.jobs import jobs_of
from harness.plan.machines import ThisMachine
from harness.results import build
from harness.results.point_results import PointResult
from harness.results.store import Store, load, point_name
from model.reasons import texts
from model.result import RunResult, Status
from model.spec import RunSpec, TransportSpec
from tests.support.fake_engine import FakeEngine
from tests.support.recorded_progress import Recorder
from tests.support.stored_points import in_window_of, leftovers, result_of, spec_of


@dataclasses.dataclass
class Custom(FakeEngine):
    """A fake engine whose `run` the test provides."""

    custom: Callable[[RunSpec, Path], RunResult] = lambda _spec, _raw: result_of([1.0])

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:  # noqa: ARG002
        return in_window_of(spec, self.custom(spec, raw))


SPECS = [dataclasses.replace(spec_of(n), engine="fake") for n in (1, 2, 8)]


def run(store: Store, engine: FakeEngine, *, force: bool = False) -> tuple[SweepOutcome, Recorder]:
    recorder = Recorder()
    jobs = jobs_of(SPECS, ThisMachine(engine))
    outcome = sweep.run(jobs, partial(LocalExecutor, engine), store, store.read(), recorder, force)
    assert recorder.ended == 1
    assert leftovers(store.directory) == []
    return outcome, recorder


def summary_rows(store: Store) -> int:
    return len((store.directory / "summary.csv").read_text().splitlines()) - 1


def test_a_whole_sweep(store: Store) -> None:
    outcome, recorder = run(store, FakeEngine())
    assert (outcome.exit_code, outcome.planned, len(outcome.points)) == (0, 4, 4)
    assert [j.spec for j in outcome.points[1:]] == SPECS
    assert {status for _, status in recorder.finished} == {Status.OK}
    assert summary_rows(store) == 4
    assert all(j.baseline_mbps is not None for j in outcome.points)


def test_a_finished_sweep_runs_nothing_unless_forced(store: Store) -> None:
    run(store, FakeEngine())
    outcome, recorder = run(store, FakeEngine(fail=lambda _spec: True))
    assert (outcome.exit_code, recorder.pending, recorder.started) == (0, 0, [])
    outcome, recorder = run(store, FakeEngine(), force=True)
    assert (outcome.exit_code, recorder.pending, len(recorder.started)) == (0, 4, 4)


def test_code_that_changes_between_points_ends_the_sweep(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what only looks new, such as a file that was written again, does not."""
    code = tmp_path / "code" / "engines" / "hosts.py"
    code.parent.mkdir(parents=True)
    code.write_text("FACTOR = 1\n")
    monkeypatch.setattr(build, "ROOT", tmp_path / "code")
    monkeypatch.setattr(build, "DECIDING", ("engines",))
    edits_of = iter([(1, "FACTOR = 1\n"), (2, "FACTOR = 2\n")])

    def edits(spec: RunSpec, raw: Path) -> RunResult:
        del spec, raw
        at_s, text = next(edits_of)
        code.write_text(text)
        os.utime(code, (at_s, at_s))
        return result_of([1.0])

    with pytest.raises(HostUnfitError, match=r"hosts\.py"):
        run(store, Custom(custom=edits))
    assert len(store.read().points) == 2


def test_names_of_folders_fit_whatever_the_user_calls_a_file() -> None:
    text = "from ccp import Reno\n"
    cc = OwnAlgorithm("x" * 200 + chr(233) + ".py", text)
    specs = [
        dataclasses.replace(spec_of(2), transport=TransportSpec(n, cc), routing="hashed") for n in (2, 3)
    ]
    found = {point_name(spec) for spec in specs}
    assert len(found) == 2
    assert all(len(name.encode()) < 220 for name in found)


def test_a_failed_point_stops_nothing_and_is_retried(store: Store) -> None:
    outcome, recorder = run(store, FakeEngine(fail=lambda spec: spec.transport.subflows == 2))
    assert outcome.exit_code == 1
    assert [status for _, status in recorder.finished] == [Status.OK, Status.OK, Status.FAILED, Status.OK]
    assert summary_rows(store) == 4
    failed = outcome.points[2]
    assert texts(failed.reasons) == "running the fake engine: this point is set to fail; change `fail`"
    outcome, recorder = run(store, FakeEngine())
    assert (outcome.exit_code, recorder.started) == (0, [point_name(SPECS[1])])


def test_a_suspect_point_is_kept_and_reported(store: Store) -> None:
    outcome, _ = run(store, FakeEngine(suspect=lambda spec: spec.transport.subflows == 8))
    assert outcome.exit_code == 1
    outcome, recorder = run(store, FakeEngine())
    assert (outcome.exit_code, recorder.pending) == (1, 0)


def test_a_forced_run_that_fails_keeps_the_earlier_result(store: Store) -> None:
    run(store, FakeEngine())
    outcome, recorder = run(store, FakeEngine(fail=lambda spec: spec.transport.subflows == 8), force=True)
    assert outcome.exit_code == 1
    assert outcome.failures == (point_name(SPECS[2]),)
    assert {point.status for point in load(store.directory)} == {Status.OK}
    assert "its earlier result is kept" in recorder.notes[0]


def test_an_interruption_keeps_what_is_finished_and_the_next_run_goes_on(store: Store) -> None:
    outcome, recorder = run(store, FakeEngine(interrupt=lambda spec: spec.transport.subflows == 2))
    assert (outcome.exit_code, outcome.interrupted, len(outcome.points)) == (130, True, 2)
    assert len(recorder.started) == 3
    assert summary_rows(store) == 2
    outcome, recorder = run(store, FakeEngine())
    assert (outcome.exit_code, recorder.started) == (0, [point_name(spec) for spec in SPECS[1:]])


def test_an_interruption_between_a_point_and_its_summary(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, calls = summary_csv.write, []

    def interrupted(where: Store, points: Sequence[PointResult]) -> None:
        calls.append(len(points))
        if len(calls) == 2:
            raise KeyboardInterrupt
        really(where, points)

    monkeypatch.setattr(summary_csv, "write", interrupted)
    monkeypatch.setattr(sweep, "SUMMARY_EVERY_S", 0.0)
    outcome, _ = run(store, FakeEngine())
    assert (outcome.interrupted, len(outcome.points), summary_rows(store)) == (True, 2, 2)


def test_a_bug_in_an_engine_costs_one_point_and_leaves_its_traceback(store: Store) -> None:
    def buggy(spec: RunSpec, _raw: Path) -> RunResult:
        if spec.transport.subflows == 2:
            raise ZeroDivisionError("by zero\nreally")
        return result_of([1.0])

    outcome, _ = run(store, Custom(custom=buggy))
    failed = outcome.points[2]
    assert texts(failed.reasons).startswith("a bug: ZeroDivisionError: by zero really (traceback in raw/")
    assert "in buggy" in (failed.path / "raw" / "traceback.txt").read_text()


def test_a_result_without_its_numbers_is_failed(store: Store) -> None:
    outcome, _ = run(store, Custom(custom=lambda _spec, _raw: result_of([1.0, float("nan")])))
    assert {(j.status, texts(j.reasons)) for j in outcome.points} == {
        (Status.FAILED, "flow 1 has no goodput")
    }


def test_an_unfit_machine_ends_the_sweep_and_keeps_what_is_finished(store: Store) -> None:
    def busy(spec: RunSpec, _raw: Path) -> RunResult:
        if spec.transport.subflows == 2:
            raise BusyError("pid 7 emulates")
        return result_of([1.0])

    with pytest.raises(BusyError):
        run(store, Custom(custom=busy))
    assert len(load(store.directory)) == summary_rows(store) == 2
    assert leftovers(store.directory) == []


@pytest.mark.parametrize("where", ["engine", "store"])
def test_a_full_disk_ends_the_sweep_with_nothing_half_written(
    store: Store, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def engine_full(spec: RunSpec, raw: Path) -> RunResult:
        if where == "engine" and spec.transport.subflows == 8:
            raise full
        (raw / "big").write_text("x")
        return result_of([1.0])

    really = files.write_bytes

    def store_full(path: Path, data: bytes) -> None:
        if where == "store" and "mptcp8" in str(path.resolve()):
            path.write_bytes(data[:5])
            raise full
        really(path, data)

    monkeypatch.setattr(files, "write_bytes", store_full)
    with pytest.raises(StoreError, match="No space left on device; free some space"):
        run(store, Custom(custom=engine_full))
    assert len(load(store.directory)) == summary_rows(store) == 3
    assert leftovers(store.directory) == []


def test_a_damaged_point_is_named_and_run_again(store: Store) -> None:
    outcome, _ = run(store, FakeEngine())
    (outcome.points[1].path / "flows.csv").unlink()
    outcome, recorder = run(store, FakeEngine())
    assert (outcome.exit_code, recorder.started) == (0, [point_name(SPECS[0])])
    assert "flows.csv: No such file" in recorder.notes[0]


def test_an_interruption_after_a_folder_is_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    really = files.open_aside

    def interrupted(parent: Path, name: str, tag: str = "") -> files.Aside:
        aside = really(parent, name, tag)
        if "mptcp2" in name:
            raise KeyboardInterrupt
        return aside

    monkeypatch.setattr(files, "open_aside", interrupted)
    outcome, _ = run(store, FakeEngine())
    assert (outcome.interrupted, len(outcome.points)) == (True, 2)
