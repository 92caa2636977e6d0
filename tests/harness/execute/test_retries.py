"""Retries: suspect points run again after the others, the first ok attempt counts, every attempt is kept."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from common.errors import HostUnfitError
from engines import registry as engines
from experiments.command import main
from harness.baseline import baseline_of, expected_mbps, is_baseline
from harness.cli.progress import JsonProgress
from harness.execute import sweep
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import SweepOutcome
from harness.options.options import retries_of
from harness.plan import session
from harness.plan.jobs import Plan, jobs_of
from harness.plan.machines import ThisMachine
from harness.results import run_json, tables
from harness.results.point_results import PointResult
from harness.results.run_json import Attempt
from harness.results.store import Store, load, point_name, scan
from model.reasons import DRIFT, Reason
from model.result import Status
from model.spec import RunSpec
from tests.support.flaky_engine import NOISE, NOT_NOISE, Flaky
from tests.support.options import options_typed
from tests.support.recorded_progress import Recorder
from tests.support.stored_points import EXPERIMENT, leftovers, put, result_of, spec_of

SPECS = [dataclasses.replace(spec_of(n), engine="fake") for n in (8, 1, 2)]
NOISY = point_name(SPECS[0])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "counters").mkdir()
    return Store.open(tmp_path, EXPERIMENT)


def flaky(store: Store, **changes: object) -> Flaky:
    return Flaky(counters=store.directory.parent / "counters", **changes)  # type: ignore[arg-type]


class SideBySide(Recorder):
    """A Recorder of points that may run side by side."""

    def finish(self, judged: object, place: sweep.SweepPosition) -> None:
        del judged
        self.places.append(place)


def run(
    store: Store, engine: Flaky, retries: int, cpu_bound: bool = False, force: bool = False
) -> tuple[SweepOutcome, SideBySide]:
    recorder = SideBySide()
    jobs = jobs_of(SPECS, ThisMachine(engine), cpu_bound=cpu_bound)
    outcome = sweep.run(
        jobs, partial(LocalExecutor, engine), store, store.read(), recorder, force, retries or None
    )
    assert leftovers(store.directory) == []
    return outcome, recorder


def stored(store: Store) -> PointResult:
    return next(point for point in load(store.directory) if point.name == NOISY)


def statuses(store: Store) -> list[Status]:
    return [attempt.status for attempt in stored(store).attempts]


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_suspect_point_runs_again_after_all_others_and_its_ok_attempt_counts(
    store: Store, parallel: int
) -> None:
    outcome, recorder = run(store, flaky(store, parallel=parallel), retries=1)
    assert outcome.exit_code == 0
    assert sorted(recorder.started[:4]) == sorted({*recorder.started})
    assert recorder.started[4:] == [NOISY]
    assert statuses(store) == [Status.SUSPECT, Status.OK]
    assert stored(store).metrics["run"] == 2
    assert run_json.attempt_words(stored(store).attempts) == "attempt 2 of 2"


def test_counters_and_time_left_include_the_retry(store: Store) -> None:
    _, recorder = run(store, flaky(store), retries=1)
    places = [(place.index, place.total, place.attempt, place.again) for place in recorder.places]
    assert places == [
        (1, 4, 1, False), (1, 4, 1, False), (2, 4, 1, False), (2, 5, 1, True), (3, 5, 1, False),
        (3, 5, 1, False), (4, 5, 1, False), (4, 5, 1, False), (5, 5, 2, False), (5, 5, 2, False),
    ]  # fmt: skip
    assert recorder.places[3].eta_s > 0 and recorder.places[7].eta_s > 0, "as long as points are left"
    assert recorder.places[-1].eta_s == 0


def test_where_no_attempt_is_ok_the_first_one_stays(store: Store) -> None:
    outcome, recorder = run(store, flaky(store, noisy_runs=9), retries=2)
    assert outcome.exit_code == 1
    assert (len(recorder.started), statuses(store)) == (6, [Status.SUSPECT] * 3)
    assert stored(store).metrics["run"] == 1
    assert run_json.attempt_words(stored(store).attempts) == "attempt 1 of 3"


def test_no_attempt_follows_an_ok_one(store: Store) -> None:
    """A second ok attempt could only serve to choose the better number."""
    _, recorder = run(store, flaky(store), retries=9)
    assert recorder.started.count(NOISY) == 2
    _, recorder = run(store, flaky(store), retries=9)
    assert recorder.started == []


def test_the_same_command_goes_on_with_the_retries_that_are_left(store: Store) -> None:
    engine = flaky(store, noisy_runs=2)
    run(store, engine, retries=0)
    assert statuses(store) == [Status.SUSPECT]
    _, recorder = run(store, engine, retries=1)
    assert (recorder.started, statuses(store)) == ([NOISY], [Status.SUSPECT] * 2)
    _, recorder = run(store, engine, retries=1)
    assert recorder.started == []
    outcome, recorder = run(store, engine, retries=2)
    assert (recorder.started, outcome.exit_code) == ([NOISY], 0)
    assert statuses(store) == [Status.SUSPECT, Status.SUSPECT, Status.OK]


def test_a_forced_run_begins_its_attempts_anew(store: Store) -> None:
    run(store, flaky(store), retries=1)
    run(store, flaky(store), retries=1, force=True)
    assert statuses(store) == [Status.OK]


def test_what_the_machine_is_not_to_blame_for_is_not_retried(store: Store) -> None:
    _, recorder = run(store, flaky(store, reason=NOT_NOISE), retries=1)
    assert recorder.started.count(NOISY) == 1


def test_points_that_overload_the_machine_on_purpose_are_not_retried(store: Store) -> None:
    outcome, recorder = run(store, flaky(store), retries=1, cpu_bound=True)
    assert (recorder.started.count(NOISY), outcome.exit_code) == (1, 0)


def test_an_interrupted_retry_leaves_the_first_attempt_and_is_done_by_the_next_run(store: Store) -> None:
    engine = flaky(store, stops_on=2)
    outcome, _ = run(store, engine, retries=1)
    assert (outcome.interrupted, len(outcome.points)) == (True, 4)
    assert (statuses(store), stored(store).metrics["run"]) == ([Status.SUSPECT], 1)
    outcome, recorder = run(store, engine, retries=1)
    assert (outcome.exit_code, recorder.started) == (0, [NOISY])
    assert (statuses(store), stored(store).metrics["run"]) == ([Status.SUSPECT, Status.OK], 3)


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_retry_that_fails_is_an_attempt_and_keeps_the_first(store: Store, parallel: int) -> None:
    outcome, _ = run(store, flaky(store, fails_on=2, parallel=parallel), retries=1)
    assert (outcome.exit_code, outcome.failures) == (1, ())
    assert statuses(store) == [Status.SUSPECT, Status.FAILED]
    assert stored(store).status is Status.SUSPECT
    assert "a cable was pulled" in run_json.list_attempts(stored(store).attempts)


def test_attempts_come_back_as_they_were(store: Store) -> None:
    run(store, flaky(store), retries=1)
    first, second = stored(store).attempts
    assert first.reasons == (NOISE,)
    assert (second.reasons, second.goodput_mbps) == ((), stored(store).goodput_mbps and first.goodput_mbps)
    assert first.started_at <= second.started_at
    assert Attempt.from_json(json.loads(json.dumps(first.to_json()))) == first


def test_a_baseline_of_the_computed_goodput_needs_no_retry(store: Store) -> None:
    baseline = baseline_of(spec_of())
    for goodput_mbps, tries in ((expected_mbps(baseline), 0), (4.0, 1)):
        assert goodput_mbps
        put(store, baseline, result_of([goodput_mbps], Status.SUSPECT, "CPU: late"))
        assert [entry.machine_attempts for entry in scan(store.directory).points] == [tries]


class TestBaselines:
    """Between real hosts a baseline is tried three times in all, whatever is wrong with it."""

    SPECS = (dataclasses.replace(spec_of(2), engine="mininet"),)

    def tries(self, store: Store, engine: Flaky, retries: int | None, cpu_bound: bool = False) -> int:
        engine = dataclasses.replace(engine, name="mininet", falls_on=is_baseline)
        jobs = jobs_of(self.SPECS, ThisMachine(engine), cpu_bound=cpu_bound)
        sweep.run(jobs, partial(LocalExecutor, engine), store, store.read(), SideBySide(), False, retries)
        (baseline,) = (point for point in load(store.directory) if is_baseline(point.spec))
        assert len(scan(store.directory).points) == 2
        return len(baseline.attempts)

    @pytest.mark.parametrize("reason", [NOISE, Reason(DRIFT, "the halves differ")])
    @pytest.mark.parametrize("cpu_bound", [False, True])
    def test_also_where_the_profile_retries_no_point(
        self, store: Store, reason: Reason, cpu_bound: bool
    ) -> None:
        engine = flaky(store, noisy_runs=9, reason=reason)
        assert self.tries(store, engine, retries_of(options_typed(profile="paper")), cpu_bound) == 3

    def test_not_where_the_user_said_so(self, store: Store) -> None:
        engine = flaky(store, noisy_runs=9)
        assert self.tries(store, engine, retries_of({}, 0)) == 1

    def test_one_that_is_ok_and_not_what_is_computed_is_tried_again(self, store: Store) -> None:
        baseline = dataclasses.replace(baseline_of(self.SPECS[0]))
        right_mbps = expected_mbps(baseline)
        assert right_mbps
        for goodput_mbps, tries in ((right_mbps, 0), (0.99 * right_mbps, 1)):
            put(store, baseline, result_of([goodput_mbps]))
            assert [entry.machine_attempts for entry in scan(store.directory).points] == [tries]

    def test_the_attempt_that_is_as_computed_counts(self) -> None:
        ok, off, suspect = (
            Attempt(Status.OK, (), 4.78, 9.0),
            Attempt(Status.OK, (Reason("baseline", "4.5 is not 4.78"),), 4.5, 9.0),
            Attempt(Status.SUSPECT, (NOISE,), 4.0, 9.0),
        )
        assert run_json.counting_attempt([off, suspect, ok]) == 3
        assert run_json.counting_attempt([suspect, off]) == 2
        assert run_json.counting_attempt([off, off]) == 1


def test_json_lines_name_their_attempt(store: Store) -> None:
    stream = StringIO()
    engine = flaky(store)
    progress = JsonProgress(stream, SideBySide(), EXPERIMENT)
    jobs = jobs_of(SPECS, ThisMachine(engine))
    sweep.run(jobs, partial(LocalExecutor, engine), store, store.read(), progress, False, 1)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    runs = [e for e in events if e["event"] == "point" and e["point"] == NOISY]
    assert [(e["attempt"], e["again"]) for e in runs] == [(1, True), (2, False)]
    assert [e["elapsed_s"] for e in runs] == [each.elapsed_s for each in stored(store).attempts]


def test_a_finished_sweep_says_what_is_suspect_and_what_runs_it_again(store: Store) -> None:
    run(store, flaky(store, noisy_runs=9), retries=1)
    _, recorder = run(store, flaky(store, noisy_runs=9), retries=1)
    assert "1 suspect point: --retry-suspect 2 runs it once more" in recorder.notes


def test_a_failure_beside_a_kept_result_is_forgotten_when_a_later_attempt_is_stored(store: Store) -> None:
    engine = flaky(store, noisy_runs=1)
    run(store, engine, retries=0)
    (store.directory.parent / "counters" / SPECS[0].content_hash()).write_text("1")
    outcome, _ = run(store, dataclasses.replace(engine, fails_on=2), retries=1, force=True)
    assert (outcome.failures, outcome.exit_code) == ((), 0)


class TestCommand:
    @pytest.fixture
    def counters(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = tmp_path / "counters"
        folder.mkdir()
        monkeypatch.setitem(engines.ENGINES, "fake", lambda: Flaky(counters=folder))
        return folder

    def refabric(self, command: str, tmp_path: Path, *options: str) -> str:
        asked = (EXPERIMENT, "--engine", "fake", "--k", "4", "--profile", "smoke", *options)
        return CliRunner().invoke(main, [command, *asked, "--results", str(tmp_path)]).stdout

    @pytest.mark.usefixtures("counters")
    def test_the_profile_decides_unless_an_option_does(self, tmp_path: Path) -> None:
        assert "[5/5]" not in self.refabric("run", tmp_path, "--retry-suspect", "0")
        assert "to retry" in self.refabric("plan", tmp_path)
        assert "attempt 2 of 2" in self.refabric("run", tmp_path)
        assert "to retry" not in self.refabric("plan", tmp_path)

    def test_ctrl_c_during_retries_shows_what_is_finished(
        self, counters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(engines.ENGINES, "fake", lambda: Flaky(counters=counters, stops_on=2))
        output = self.refabric("run", tmp_path)
        assert "interrupted: all 4 points are finished" in output
        assert "100 % is" in output, "the table"

    def test_a_machine_that_cannot_retry_goes_without(self, store: Store) -> None:
        class Unfit(Flaky):
            def check(self, spec: RunSpec) -> None:
                del spec
                raise HostUnfitError("needs root")

        engine = flaky(store)
        run(store, engine, retries=0)
        plan = Plan(jobs_of(SPECS, ThisMachine(engine)), ())
        unfit = ThisMachine(Unfit())
        left, lines = session._retries(plan, scan(store.directory).points, unfit, 1)
        assert (left, lines) == (None, ["1 suspect point not run again: needs root"])


def test_reasons_that_blame_the_machine_are_found_without_reading_the_tables(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, SPECS[1], result_of([1.0], Status.SUSPECT, "subflows: 3 of 16 had fewer"))
    monkeypatch.setattr(tables, "read_rows", None)
    (entry,) = scan(store.directory).points
    assert (entry.finished, entry.machine_attempts) == (True, 0)
