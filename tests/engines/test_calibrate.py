from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.capacity import Measured
from engines.emulation import calibrate
from engines.engine import Observer
from engines.result import RunResult, Status
from engines.spec import RunSpec, TopologySpec
from fabric.errors import HostUnfitError, RunError

METRICS = {"late_p99_us": 1.0, "packet_hops_per_s": 400_000.0}
TREE = TopologySpec("fat_tree", {"k": 4})


class Trial:
    """An engine that carries rates up to `most_mbps`; above it is what `overloaded` makes of it."""

    name = "trial"
    parallel = 1

    def __init__(self, most_mbps: float, overloaded: Callable[[], RunResult]) -> None:
        self.most_mbps, self.overloaded = most_mbps, overloaded

    def check(self, spec: RunSpec) -> None:
        del spec

    def coupled_cc(self) -> tuple[str, str]:
        return "lia", ""

    def expected_s(self, spec: RunSpec) -> float:
        del spec
        return 0.0

    def memory_mb(self, spec: RunSpec) -> float:
        del spec
        return 0.0

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        del observer, raw
        return result(busy_pct=50.0) if spec.link.rate_mbps <= self.most_mbps else self.overloaded()


class Notes:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def phase(self, name: str, seconds: float) -> None:
        del name, seconds

    def note(self, text: str) -> None:
        self.lines.append(text)


def result(busy_pct: float) -> RunResult:
    return RunResult(Status.OK, metrics={**METRICS, "cpu_busy_pct": busy_pct})


def no_connection() -> RunResult:
    raise RunError("3 of 16 flows had no connection after 60 s")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path / "cache" / "refabric"


@pytest.mark.parametrize("overloaded", [lambda: result(99.0), no_connection])
@pytest.mark.parametrize("most_mbps", [1.0, 5.0, 20.0, 100.0])
def test_the_highest_rate_carried_is_found_and_remembered(
    most_mbps: float, overloaded: Callable[[], RunResult], cache: Path
) -> None:
    assert calibrate.cached(TREE) is None
    assert calibrate.calibrate(TREE, Notes(), Trial(most_mbps, overloaded)) == most_mbps
    assert calibrate.cached(TREE) == most_mbps
    assert [path.name for path in cache.iterdir()] == ["calibration.json"]


def test_a_machine_that_carries_nothing_is_told_so_with_the_reason() -> None:
    notes = Notes()
    with pytest.raises(HostUnfitError, match="1 Mb/s"):
        calibrate.calibrate(TREE, notes, Trial(0.0, no_connection))
    assert "no connection" in notes.lines[-1]


def test_looking_makes_no_folder(cache: Path) -> None:
    assert calibrate.cached(TREE) is None
    assert not cache.parent.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", "\0"])
def test_a_damaged_cache_is_measured_anew(text: str, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "calibration.json").write_text(text)
    assert calibrate.cached(TREE) is None
    calibrate.calibrate(TREE, Notes(), Trial(5.0, no_connection))
    assert len(json.loads((cache / "calibration.json").read_text())) == 1


def test_a_cache_that_cannot_be_written_costs_no_result(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    notes = Notes()
    assert calibrate.calibrate(TREE, notes, Trial(5.0, no_connection)) == 5.0
    assert os.fspath(cache) in notes.lines[-1]


def test_what_trials_carried_is_remembered_for_advice() -> None:
    assert calibrate.measured() == ()
    calibrate.calibrate(TREE, Notes(), Trial(5.0, lambda: result(99.0)))
    assert set(calibrate.measured()) == {Measured(400_000.0, 50.0), Measured(400_000.0, 99.0)}
    assert calibrate.rates() == [(TREE, 5.0)]


def test_a_cache_from_before_trials_were_kept_is_still_good(cache: Path) -> None:
    calibrate.calibrate(TREE, Notes(), Trial(5.0, no_connection))
    file = cache / "calibration.json"
    entries = json.loads(file.read_text())
    for entry in entries.values():
        del entry["trials"]
    file.write_text(json.dumps({**entries, "of another machine": next(iter(entries.values()))}))
    assert calibrate.cached(TREE) == 5.0
    (known,) = calibrate.measured()
    assert known.busy_pct == 70.0
    assert 10_000 < known.hops_per_s < 200_000  # 16 hosts at 5 Mb/s


@pytest.mark.parametrize(
    "damage",
    [{"rate_mbps": "five"}, {"rate_mbps": None}, {"trials": [1]}, {"trials": [{"busy_pct": 3}]},
     {"topology": 7}, {"rate_mbps": -1}],
)  # fmt: skip
def test_a_damaged_entry_is_measured_anew(damage: dict[str, object], cache: Path) -> None:
    calibrate.calibrate(TREE, Notes(), Trial(5.0, no_connection))
    file = cache / "calibration.json"
    file.write_text(json.dumps({key: {**e, **damage} for key, e in json.loads(file.read_text()).items()}))
    assert calibrate.cached(TREE) is None
    assert calibrate.measured() == ()
