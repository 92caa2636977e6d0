"""The faults that soak.py must find, made up here."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.command import main
from tests.soak.shape import broken, differences, shape
from tests.soak.soak import Footprint, findings_of_kills, findings_of_points
from tests.support import leftovers
from tests.support.stored_points import EXPERIMENT

CALM = Footprint(0, "ok", [], 4.0, 35_000, 100_000, 6, 1, [])


def footprints(count: int, **growth: int) -> list[Footprint]:
    return [
        dataclasses.replace(
            CALM, point=n, **{name: getattr(CALM, name) + n * by for name, by in growth.items()}
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_what_does_not_grow_is_no_fault(count: int) -> None:
    found = findings_of_points(footprints(count, kernel_kb=50))
    assert found["faults"] == []
    assert (found["points"], found["status"]["ok"], found["rss_kb_a_point"]) == (count, count, 0)


@pytest.mark.parametrize(
    ("growth", "words"),
    [
        ({"rss_kb": 200}, "memory grows by 200 kB"),
        ({"fds": 1}, "descriptors grew"),
        ({"threads": 1}, "threads"),
    ],
)
def test_what_grows_is_a_fault(growth: dict[str, int], words: str) -> None:
    (fault,) = findings_of_points(footprints(30, **growth))["faults"]
    assert words in fault


def test_growth_while_things_settle_is_none() -> None:
    early = [dataclasses.replace(CALM, rss_kb=20_000 + 2000 * n, fds=3 + n // 3) for n in range(9)]
    assert findings_of_points([*early, *footprints(30)])["faults"] == []


@pytest.mark.parametrize("left", [["congestion controls", "BPF links"], ["BPF links", "processes"]])
def test_another_runs_congestion_control_is_waited_for(
    left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([{kind: ("rf_lia",) for kind in left}] * 3)
    monkeypatch.setattr(leftovers, "snapshot", lambda _: next(seen, {}))
    gone = leftovers.wait_until_gone({}, seconds=0.0)
    assert gone == ([f"{kind}: rf_lia" for kind in left] if "processes" in left else [])


def test_leftovers_and_failures_are_faults() -> None:
    left = dataclasses.replace(CALM, left=["interfaces: h0-eth0"])
    failed = dataclasses.replace(CALM, status="failed", reasons=["no flow has data"])
    assert len(findings_of_points([CALM, left, failed])["faults"]) == 2


def test_kills_are_summed_up() -> None:
    kill = {"ended": False, "at_s": 3.5, "points": 1, "faults": ["left behind: processes: 7 iperf3"]}
    done = {"ended": True, "faults": []}
    found = findings_of_kills([{"length_s": 20.0}, kill, done, {**kill, "faults": []}, done])
    assert (found["kills"], found["sweeps_completed"], found["sweeps_equal_in_shape"]) == (2, 2, 2)
    assert found["faults"] == ["left behind: processes: 7 iperf3"]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a finished sweep."""
    results = tmp_path_factory.mktemp("soak")
    options = ("--engine", "fake", "--k", "4", "--subflows", "1,2", "--qmon", "--results", str(results))
    assert CliRunner().invoke(main, ("run", EXPERIMENT, *options)).exit_code == 0
    return results / EXPERIMENT


@pytest.fixture
def copy(sweep: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sweep, tmp_path / EXPERIMENT)


def point(directory: Path) -> Path:
    return next(directory.glob("*mptcp2*"))


def test_a_copy_has_the_same_shape(sweep: Path, copy: Path) -> None:
    assert differences(shape(sweep), shape(copy)) == []
    assert broken(copy) == []
    assert len(shape(copy)["points"]) == 3


DAMAGE: dict[str, Callable[[Path], object]] = {
    "/points": lambda d: shutil.rmtree(point(d)),
    "/broken": lambda d: (point(d) / "run.json").write_text("{"),
    "/unfinished": lambda d: (d / ".tmp-half").mkdir(),
    "/charts": lambda d: next((d / "charts").iterdir()).unlink(),
    "/files": lambda d: (point(d) / "raw" / "fake.txt").unlink(),
    "/summary": lambda d: (d / "summary.csv").write_text("a\n1\n"),
}


@pytest.mark.parametrize("where", DAMAGE)
def test_what_is_missing_or_too_much_is_another_shape(sweep: Path, copy: Path, where: str) -> None:
    DAMAGE[where](copy)
    assert any(where in line for line in differences(shape(sweep), shape(copy)))


@pytest.mark.parametrize("where", ["/broken", "/summary"])
def test_what_a_kill_must_not_leave_is_reported(copy: Path, where: str) -> None:
    DAMAGE[where](copy)
    assert broken(copy)


def test_a_truncated_sample_is_reported(copy: Path) -> None:
    sample = point(copy) / "samples" / "goodput.csv.gz"
    sample.write_bytes(sample.read_bytes()[:-20])
    (fault,) = broken(copy)
    assert str(sample) in fault


def test_a_sweep_that_had_no_time_for_a_summary_is_not_broken(copy: Path) -> None:
    (copy / "summary.csv").unlink()
    assert broken(copy) == []
