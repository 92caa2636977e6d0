"""cross-check on made-up engines: one sweep of two engines, where both can run and where one cannot."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from common.errors import HostUnfitError
from engines import registry
from experiments.command import main
from harness.results import point_results
from harness.results.point_results import judge
from harness.results.store import load
from model.spec import LINUX, RunSpec, StackSpec
from tests.support.fake_engine import FakeEngine

RUN = ("cross-check", "--k", "4", "--rate", "10", "--seconds", "2", "--warmup", "1")
NEEDS_ROOT = "running real hosts needs root: sudo it"


class Unfit(FakeEngine):
    """An engine that refuses every spec, as the emulator does without root."""

    def check(self, spec: RunSpec) -> None:
        del spec
        raise HostUnfitError(NEEDS_ROOT)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(registry.ENGINES, "simulator", lambda: FakeEngine("simulator"))
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: FakeEngine("mininet"))
    return tmp_path / "results"


def refabric(command: str, results: Path, *more: str) -> Result:
    return CliRunner().invoke(main, [command, *RUN, "--results", str(results), *more])


def stored(results: Path) -> list[RunSpec]:
    return [point.spec for point in load(results / "cross-check")]


def test_every_point_runs_in_both_engines_and_is_compared(results: Path) -> None:
    done = refabric("run", results)
    assert done.exit_code == 0, done.output
    specs = stored(results)
    assert sorted(spec.engine for spec in specs) == ["mininet"] * 4 + ["simulator"] * 4
    assert {spec.stack for spec in specs if spec.engine == "mininet"} == {StackSpec()}
    assert {spec.stack for spec in specs if spec.engine == "simulator"} == {LINUX}
    assert len(list((results / "cross-check" / "charts").glob("cross_check-*.svg"))) == 1
    found = point_results.pairs(judge(load(results / "cross-check")))
    assert [pair.simulated.spec.transport.subflows for pair in found] == [1, 8, 8]
    for pair in found:  # made up from the spec's seed alone, so alike
        assert pair.rank_correlation == pytest.approx(1)
        assert pair.mean_difference == pytest.approx(0)
    page = (results / "cross-check" / "report.html").read_text()
    assert "Flow by flow, emulated and simulated" in page
    assert "Expected and measured" in page
    again = refabric("run", results)
    assert again.exit_code == 0
    assert "[1/" not in again.output


@pytest.mark.usefixtures("undrawn")
def test_without_root_the_simulator_runs_and_reports_what_is_missing(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: Unfit("mininet"))
    done = refabric("run", results)
    assert done.exit_code == 1
    lines = [line for line in done.output.splitlines() if "not run: 4 points of engine mininet" in line]
    assert lines
    assert all(NEEDS_ROOT in line for line in lines)
    assert {spec.engine for spec in stored(results)} == {"simulator"}
    assert "Engine mininet has run none of it" in (results / "cross-check" / "report.html").read_text()
    states = [
        json.loads(line)["status"] for line in refabric("status", results, "--json").output.splitlines()
    ]
    assert sorted(states) == ["missing"] * 4 + ["ok"] * 4
    plan = refabric("plan", results).output
    assert plan.count("finished") == 4
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: FakeEngine("mininet"))
    completed = refabric("run", results)
    assert completed.exit_code == 0
    assert "[6/6]" in completed.output, "a made-up baseline is not as computed: it is tried three times"
    with (results / "cross-check" / "summary.csv").open() as file:
        assert [row["engine"] for row in csv.DictReader(file)] == ["mininet"] * 4 + ["simulator"] * 4


def test_without_any_engine_nothing_starts(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mininet", "simulator"):
        monkeypatch.setitem(registry.ENGINES, name, Unfit)
    done = refabric("run", results)
    assert (done.exit_code, done.stderr) == (3, f"refabric: {NEEDS_ROOT}\n")
    assert not results.exists()


@pytest.mark.usefixtures("undrawn")
def test_without_the_machine_no_rate_is_measured(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: Unfit("mininet"))
    monkeypatch.setattr("engines.emulation.calibrate.cached", lambda *_: None)
    done = refabric("run", results, "--rate", "auto")
    assert done.exit_code == 1
    assert {spec.link.rate_mbps for spec in stored(results)} == {10.0}


@pytest.mark.usefixtures("undrawn")
def test_json_has_the_points_of_both(results: Path) -> None:
    lines = refabric("run", results, "--json").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    verdicts = {(e["quantity"], e["algorithm"]): e for e in events if e["event"] == "verdict" and e["k"] == 4}
    assert verdicts["across_spearman", "tcp"]["verdict"] == "agrees"
    assert verdicts["across_mean", "lia"]["measured"]["value"] == pytest.approx(0)
    assert events[-1]["event"] == "done"


@pytest.mark.usefixtures("undrawn")
def test_each_engine_can_run_by_itself(results: Path) -> None:
    assert refabric("run", results, "--engine", "simulator").exit_code == 0
    assert {spec.engine for spec in stored(results)} == {"simulator"}
    assert refabric("run", results, "--engine", "mininet").exit_code == 0
    assert len(point_results.pairs(judge(load(results / "cross-check")))) == 3
    whole = refabric("run", results)
    assert whole.exit_code == 0
    assert "[1/" not in whole.output


@pytest.mark.parametrize("bad", [("--engine", "simulator,ns3"), ("--subflows", "1")])
def test_bad_input_is_one_line(results: Path, bad: tuple[str, str]) -> None:
    done = refabric("run", results, *bad)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.usefixtures("undrawn")
def test_a_suspect_emulation_is_no_verdict(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = FakeEngine("mininet", suspect=lambda spec: spec.transport.subflows == 1)
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: late)
    done = refabric("run", results, "--json")
    assert done.exit_code == 1
    events = [json.loads(line) for line in done.stdout.splitlines()]
    words = {e["verdict"] for e in events if e["event"] == "verdict" and e["k"] == 4}
    assert words == {"suspect"}


def test_linux_in_virtual_time_stands_for_real_hosts_and_is_compared_with_them(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENGINES, "linux", lambda: FakeEngine("linux"))
    done = refabric("run", results, "--engine", "simulator,linux", "--subflows", "1,8")
    assert done.exit_code == 0, done.output
    found = point_results.pairs(judge(load(results / "cross-check")))
    assert {(pair.emulated.spec.engine, pair.simulated.spec.engine) for pair in found} == {
        ("linux", "simulator")
    }
    assert list((results / "cross-check" / "charts").glob("cross_check-*.svg"))
    done = refabric("run", results, "--engine", "mininet,simulator,linux", "--subflows", "1,8")
    assert done.exit_code == 0, done.output
    found = point_results.pairs(judge(load(results / "cross-check")))
    assert {(pair.emulated.spec.engine, pair.simulated.spec.engine) for pair in found} == {
        ("mininet", "simulator"),
        ("mininet", "linux"),
    }
