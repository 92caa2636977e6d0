from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import BusyError, HostUnfitError, RunError
from engines.emulation import calibrate
from engines.engine import Observer, Silent
from model.machine import FIT_PCT, MachineNoise, Utilisation
from model.reasons import KINDS, Reason
from model.result import RunResult, Status
from model.spec import RunSpec, TopologySpec
from tests.support.fake_engine import FakeEngine
from tests.support.reasons import of_text

METRICS = {"late_p99_us": 1.0, "packet_hops_per_s": 400_000.0}
TREE = TopologySpec("fat_tree", {"k": 4})
QUIET = MachineNoise(1.0, 20.0, 70.0, 300.0, 0.0, ((0, 70.0, 300.0), (1, 60.0, 200.0)))
NOISY = MachineNoise(1.0, 90.0, 4100.0, 9000.0, 0.0, ((0, 4100.0, 9000.0), (1, 60.0, 200.0)))
LATE = of_text("CPU: 1 frame in 100 was 2900 us late or more, a packet takes 1211 us at 10 Mb/s")


class Trial(FakeEngine):
    """An engine that carries rates up to `most_mbps`; above that it returns what `overloaded` does."""

    def __init__(self, most_mbps: float, overloaded: Callable[[], RunResult]) -> None:
        super().__init__()
        self.most_mbps, self.overloaded = most_mbps, overloaded
        self.tried: list[float] = []

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        del observer, raw
        self.tried.append(spec.link.rate_mbps)
        return result(busy_pct=50.0) if spec.link.rate_mbps <= self.most_mbps else self.overloaded()


class Notes(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def result(busy_pct: float = 50.0, *reasons: Reason, late_p99_us: float = 1.0) -> RunResult:
    metrics = {**METRICS, "cpu_busy_pct": busy_pct, "late_p99_us": late_p99_us}
    return RunResult(Status.SUSPECT if reasons else Status.OK, reasons, metrics=metrics)


def no_connection() -> RunResult:
    raise RunError("3 of 16 flows had no connection after 60 s")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(calibrate, "measure", lambda _seconds: QUIET)
    return tmp_path / "cache" / "refabric"


class Taken(Trial):
    """An engine whose machine another process has."""

    def take_machine(self) -> None:
        raise BusyError("pid 7 emulates")


def test_another_emulation_is_named_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "measure", lambda _seconds: pytest.fail("noise of the other emulation"))
    engine = Taken(10.0, no_connection)
    with pytest.raises(BusyError, match="pid 7"):
        calibrate.calibrate(TREE, Notes(), engine)
    assert engine.tried == []


@pytest.mark.parametrize("overloaded", [lambda: result(99.0), lambda: result(40.0, LATE), no_connection])
@pytest.mark.parametrize("most_mbps", [2.0, 5.0, 20.0, 100.0])
def test_the_highest_rate_carried_is_found_and_remembered(
    most_mbps: float, overloaded: Callable[[], RunResult], cache: Path
) -> None:
    assert calibrate.cached(TREE) is None
    assert calibrate.calibrate(TREE, Notes(), Trial(most_mbps, overloaded)) == most_mbps
    assert calibrate.cached(TREE) == most_mbps
    assert [path.name for path in cache.iterdir()] == ["calibration.json"]


@pytest.mark.parametrize("overloaded", [no_connection, lambda: result(99.0), lambda: result(40.0, LATE)])
def test_the_error_of_a_machine_that_carries_nothing_has_advice(overloaded: Callable[[], RunResult]) -> None:
    notes = Notes()
    with pytest.raises(HostUnfitError, match=r"k=4 at 2 Mb/s now: .*--engine simulator.*more CPUs") as caught:
        calibrate.calibrate(TREE, notes, Trial(1.0, overloaded))
    assert "--k" not in str(caught.value), "there is no smaller tree"
    assert calibrate.cached(TREE) is None
    with pytest.raises(HostUnfitError, match="--k 4"):
        calibrate.calibrate(TopologySpec("fat_tree", {"k": 8}), notes, Trial(1.0, overloaded))


def test_noise_that_passes_refuses_no_rate() -> None:
    spoiled = iter([lambda: result(40.0, LATE), result, no_connection, result])

    def now_and_then() -> RunResult:
        return next(spoiled, result)()

    notes, engine = Notes(), Trial(10.0, now_and_then)
    assert calibrate.calibrate(TREE, notes, engine) == 100.0
    assert engine.tried == [20.0, 20.0, 50.0, 50.0, 100.0]
    assert sum(line.endswith("; trying again") for line in notes.lines) == 2


@pytest.mark.parametrize(
    ("overloaded", "tried"), [(result(99.0), [20.0, 10.0]), (result(60.0, LATE), [20.0, 20.0, 10.0])]
)
def test_a_machine_without_idle_time_is_not_tried_twice(overloaded: RunResult, tried: list[float]) -> None:
    engine = Trial(10.0, lambda: overloaded)
    calibrate.calibrate(TREE, Notes(), engine)
    assert engine.tried == tried


def test_slow_trials_are_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "BUDGET_S", -1.0)
    engine = Trial(5.0, no_connection)
    calibrate.calibrate(TREE, Notes(), engine)
    assert engine.tried == [20.0, 10.0, 5.0]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_short_trial_is_refused_only_for_what_a_lower_rate_cures(kind: str) -> None:
    found = calibrate.wrong(result(40.0, Reason(kind, f"the words of {kind}")))
    if kind in {"unsteady", "drift", "fallback", "congestion control", "repairs"}:
        assert found == ""
    else:
        assert found == f"the words of {kind}"
    both = (Reason("drift", "halves differ"), LATE)
    assert calibrate.wrong(result(40.0, *both)) == LATE.text


def test_late_frames_alone_refuse_nothing_where_the_verdict_is_ok() -> None:
    assert calibrate.wrong(result(41.0, late_p99_us=7300.0)) == ""
    assert calibrate.wrong(result(FIT_PCT)) == ""
    assert "the limit is 70 %" in calibrate.wrong(result(FIT_PCT + 1))


def test_a_bounded_search_tries_nothing_above_and_answers_for_no_more() -> None:
    engine = Trial(50.0, no_connection)
    assert calibrate.calibrate(TREE, Notes(), engine, highest_mbps=10.0) == 10.0
    assert engine.tried == [10.0]
    assert calibrate.cached(TREE, 10.0) == 10.0
    assert calibrate.cached(TREE) is None, "20 Mb/s was not tried"
    assert calibrate.rates() == []
    assert calibrate.calibrate(TREE, Notes(), engine) == 50.0
    assert (calibrate.cached(TREE), calibrate.cached(TREE, 10.0)) == (50.0, 10.0)
    assert calibrate.calibrate(TREE, Notes(), Trial(5.0, no_connection), highest_mbps=10.0) == 5.0
    assert calibrate.cached(TREE) == 5.0, "10 Mb/s was refused, so it is the highest"


def test_a_bounded_search_replaces_none_that_went_further(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Trial(50.0, no_connection)
    assert calibrate.calibrate(TREE, Notes(), engine) == 50.0
    assert calibrate.calibrate(TREE, Notes(), engine, highest_mbps=10.0) == 10.0
    assert (calibrate.cached(TREE), calibrate.cached(TREE, 10.0)) == (50.0, 10.0)
    assert calibrate.rates() == [(TREE, 50.0)]
    later_s = time.time() + 25 * 3600
    monkeypatch.setattr(time, "time", lambda: later_s)
    calibrate.calibrate(TREE, Notes(), engine, highest_mbps=10.0)
    assert calibrate.outdated(TREE) == "50 Mb/s was measured more than a day ago"
    assert calibrate.outdated(TREE, 10.0) == ""


def test_a_rate_is_outdated_in_other_noise_and_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calibrate.outdated(TREE) == "", "it was never measured"
    calibrate.calibrate(TREE, Notes(), Trial(10.0, no_connection))
    assert calibrate.outdated(TREE) == ""
    louder = dataclasses.replace(QUIET, late_p99_us=240.0)
    monkeypatch.setattr(calibrate, "measure", lambda _seconds: louder)
    assert calibrate.outdated(TREE) == "", "below the floor noise does not matter"
    monkeypatch.setattr(calibrate, "measure", lambda _seconds: NOISY)
    assert "noise has changed: when 10 Mb/s was measured" in calibrate.outdated(TREE)
    later_s = time.time() + 25 * 3600
    monkeypatch.setattr(time, "time", lambda: later_s)
    monkeypatch.setattr(calibrate, "measure", lambda _seconds: pytest.fail("no need to"))
    assert calibrate.outdated(TREE) == "10 Mb/s was measured more than a day ago"


def test_looking_makes_no_folder(cache: Path) -> None:
    assert calibrate.cached(TREE) is None
    assert not cache.parent.exists()


def test_a_cache_that_cannot_be_written_costs_no_result(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    notes = Notes()
    assert calibrate.calibrate(TREE, notes, Trial(5.0, no_connection)) == 5.0
    assert os.fspath(cache) in notes.lines[-1]


def test_what_trials_carried_is_remembered_for_advice() -> None:
    assert calibrate.measured() == ()
    calibrate.calibrate(TREE, Notes(), Trial(5.0, lambda: result(99.0)))
    assert set(calibrate.measured()) == {Utilisation(400_000.0, 50.0), Utilisation(400_000.0, 99.0)}
    assert calibrate.rates() == [(TREE, 5.0)]


def test_entries_of_other_machines_and_versions_are_ignored(cache: Path) -> None:
    calibrate.calibrate(TREE, Notes(), Trial(5.0, no_connection))
    file = cache / "calibration.json"
    (entry,) = json.loads(file.read_text()).values()
    earlier = {"rate_mbps": 1.0, "topology": ["fat_tree", {"k": 4}], "trials": entry["trials"]}
    file.write_text(json.dumps({"of another machine": entry, "of an earlier version": earlier}))
    assert calibrate.cached(TREE) is None
    assert calibrate.measured() == ()


def test_a_damaged_cache_is_measured_anew(cache: Path) -> None:
    """Damage of every other kind: tests/attacks/test_odd_json.py."""
    cache.mkdir(parents=True)
    (cache / "calibration.json").write_text("{")
    assert calibrate.cached(TREE) is None
    calibrate.calibrate(TREE, Notes(), Trial(5.0, no_connection))
    assert len(json.loads((cache / "calibration.json").read_text())) == 1
