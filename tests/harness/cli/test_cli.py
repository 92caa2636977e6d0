"""The command line as a user meets it: exit codes, one line per error, pure JSON, resume after signals."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from common.errors import HostUnfitError
from engines import registry
from engines.emulation import calibrate
from engines.engine import Engine, Observer
from harness.results.store import load
from model.spec import RunSpec, TopologySpec
from tests.support import chart_files
from tests.support.command import objects, refabric
from tests.support.fake_engine import FakeEngine
from tests.support.stored_points import EXPERIMENT, leftovers
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[3]
SLOW = """
import sys
from engines import registry
from tests.support.fake_engine import FakeEngine
from experiments.command import main
from harness.results.store import load
from harness.report import figures
figures.draw = lambda wanted: {each.figure.name: [] for each in wanted}
sleep_s = float(sys.argv.pop(1))
registry.ENGINES["fake"] = lambda: FakeEngine(sleep_s=sleep_s)
main()
"""
RUN = ("run", EXPERIMENT, "--engine", "fake", "--k", "4", "--subflows", "1,2,8")


def use(monkeypatch: pytest.MonkeyPatch, engine: Callable[[], Engine]) -> None:
    monkeypatch.setitem(registry.ENGINES, "fake", engine)


def run(results: Path, *more: str) -> Result:
    return refabric(*RUN, "--results", str(results), *more)


@pytest.mark.usefixtures("sketched")
def test_a_run_shows_a_table_published_numbers_charts_and_the_summary(results: Path) -> None:
    done = run(results)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert "MPTCP 8" in done.stdout and "100 % is 9.35 Mb/s" in done.stdout
    with (results / EXPERIMENT / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["workload"], row["subflows"]) for row in rows] == [
        ("reference", "1"), ("one_to_one", "1"), ("one_to_one", "2"), ("one_to_one", "8"),
    ]  # fmt: skip
    charts = [*(results / EXPERIMENT / "charts").iterdir()]
    assert len({chart.stem for chart in charts}) == 2
    assert all(chart.stat().st_size > 0 for chart in charts)


@pytest.mark.usefixtures("sketched")
def test_json_is_pure_and_whole(results: Path) -> None:
    done = run(results, "--json")
    assert done.exit_code == 0
    events = objects(done)
    assert [e["event"] for e in events if e["event"] in {"start", "point"}] == ["start", "point"] * 4
    points = [e for e in events if e["event"] == "point"]
    assert all(p["status"] == "ok" and p["goodput_pct_mean"] > 0 for p in points)
    assert events[-1]["event"] == "done"
    assert events[-1]["exit_code"] == 0
    charts = events[-1]["charts"]
    assert charts
    assert all(Path(chart).is_file() for chart in charts)
    assert "4 points" in done.stderr, "people read stderr"


def test_failed_and_suspect_points_end_with_one(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda: FakeEngine(fail=lambda s: s.transport.subflows == 8))
    done = run(results)
    assert done.exit_code == 1
    assert "failed: MPTCP 8, seed 1: running the fake engine" in done.stdout
    status = refabric("status", EXPERIMENT, *RUN[2:], "--results", str(results), "--json")
    assert [e["status"] for e in objects(status)] == ["ok", "ok", "ok", "failed"]
    use(monkeypatch, lambda: FakeEngine(suspect=lambda s: s.transport.subflows == 8))
    done = run(results)
    assert done.exit_code == 1
    assert "suspect" in done.stdout
    assert "[1/1]" in done.stdout


BAD = [
    ("--k", "5"), ("--k", "34"), ("--workload", "nope"), ("--rate", "-1"), ("--queue", "many"),
    ("--engine", "nope"), ("--seconds", "0"), ("--profile", "nope"), ("--frobnicate", "1"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_one_line_exit_two_and_nothing_started(results: Path, bad: tuple[str, str]) -> None:
    done = run(results, *bad)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("refabric: ")
    assert bad[0].lstrip("-") in done.stderr
    assert not results.exists()


@pytest.mark.parametrize(
    "arguments", [("frob",), ("run",), ("run", "nope"), ("shell", "ft,5"), ("calibrate", "--k", "5")]
)
def test_bad_commands_too(arguments: tuple[str, ...]) -> None:
    done = refabric(*arguments)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_an_unwritable_results_folder_is_found_before_anything_starts(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, lambda: FakeEngine(interrupt=lambda _spec: pytest.fail("started")))
    results.write_text("a file")
    done = run(results)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert str(results) in done.stderr
    assert "--results DIR" in done.stderr


def test_an_unfit_host_is_reported_before_anything_is_written(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unfit(FakeEngine):
        def check(self, spec: RunSpec) -> None:
            raise HostUnfitError(f"starting {spec.engine}: not root; run it with sudo")

    use(monkeypatch, Unfit)
    done = run(results)
    assert (done.exit_code, done.stderr) == (3, "refabric: starting fake: not root; run it with sudo\n")
    assert not results.exists()
    events = objects(run(results, "--json"))
    assert [(e["event"], e["exit_code"]) for e in events] == [("error", 3)]


def test_plan_shows_points_order_time_and_rate_and_starts_nothing(results: Path) -> None:
    plan = ("plan", EXPERIMENT, *RUN[2:], "--results", str(results))
    done = refabric(*plan)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "baseline" in lines[0]
    assert lines[-2].startswith("4 points, 4 to run, ")
    assert lines[-1].startswith("link rate at k=4: 10 Mb/s (auto, not measured")
    assert not results.exists()
    run(results)
    *jobs, total = objects(refabric(*plan, "--json"))
    assert {job["state"] for job in jobs} == {"finished"}
    assert (total["points"], total["to_run"]) == (4, 0)


def test_status_knows_missing_points_and_other_points(results: Path) -> None:
    run(results, "--subflows", "1")
    run(results, "--rate", "20", "--subflows", "1")
    done = refabric("status", EXPERIMENT, *RUN[2:], "--results", str(results))
    states = [line.split()[0] for line in done.stdout.splitlines()]
    assert states[:8] == ["ok", "ok", "missing", "missing", "ok", "ok", "2", "2"]
    assert done.stdout.count("(not of this plan)") == 2


@pytest.mark.usefixtures("drawn")
def test_plot_draws_what_is_stored_and_names_what_is_damaged(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = refabric("plot", EXPERIMENT, "--results", str(results))
    assert nothing.exit_code == 2
    refabric(*RUN, "--results", str(results))
    with monkeypatch.context() as patch:
        chart_files.write_formats(patch, "svg", "pdf", "png")
        done = refabric("plot", EXPERIMENT, "--results", str(results), "--json")
    assert done.exit_code == 0
    charts = [Path(path) for path in objects(done)[-1]["charts"]]
    assert {path.suffix for path in charts} == {".svg", ".pdf", ".png"}
    victim = next((results / EXPERIMENT).glob("*mptcp2*")) / "run.json"
    victim.write_text("{")
    done = refabric("plot", EXPERIMENT, "--results", str(results))
    assert done.exit_code == 1
    assert str(victim) in done.stderr


@pytest.mark.usefixtures("drawn")
def test_a_missing_sample_is_named_and_its_point_repeated(results: Path) -> None:
    refabric(*RUN, "--results", str(results))
    victim = next((results / EXPERIMENT).glob("*mptcp2*/samples/cpu.csv.gz"))
    victim.unlink()
    done = refabric("plot", EXPERIMENT, "--results", str(results))
    assert (done.exit_code, done.stderr.count(str(victim))) == (1, 1)
    assert "MPTCP 2" in done.stdout
    again = run(results)
    assert (again.exit_code, again.output.count(str(victim))) == (0, 1)
    assert "[1/1]" in again.stdout
    assert victim.is_file()


@pytest.mark.usefixtures("drawn")
def test_a_damaged_sample_costs_its_chart_is_named_once_and_says_how_to_mend_it(results: Path) -> None:
    options = ("cs244-fig12", *RUN[2:], "--seconds", "3", "--results", str(results))
    assert refabric("run", *options).exit_code == 0
    victim = next((results / "cs244").glob("*mptcp8*/samples/queues.csv.gz"))
    victim.write_bytes(victim.read_bytes()[:-20])
    plot = refabric("plot", "cs244-fig12", "--results", str(results))
    (line,) = plot.stderr.splitlines()
    assert str(victim) in line
    assert "remove that file and run the experiment again" in line
    assert "queue_cdf" in plot.stdout
    victim.unlink()
    assert "[1/1]" in refabric("run", *options).stdout
    assert refabric("plot", "cs244-fig12", "--results", str(results)).stderr == ""


class TestAutomaticRate:
    """With a fake calibration of the real engine: measured once, before the first point, and reported."""

    RUN = ("--k", "4", "--subflows", "1")

    @pytest.fixture(autouse=True)
    def calibration(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """What is cached; `calibrate` measures 20 Mb/s and caches it."""
        cache: list[float] = []

        def measure(_topology: TopologySpec, _observer: Observer, _engine: Engine, _highest: float) -> float:
            assert not cache, "measured again"
            cache.append(20.0)
            return 20.0

        monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
        monkeypatch.setattr(calibrate, "cached", lambda *_: cache[0] if cache else None)
        monkeypatch.setattr(calibrate, "calibrate", measure)
        monkeypatch.setitem(registry.ENGINES, "mininet", lambda: FakeEngine(name="mininet"))
        return cache

    def test_run_measures_once_reports_and_keeps_how(self, results: Path, calibration: list[float]) -> None:
        run_auto = ("run", EXPERIMENT, *self.RUN, "--results", str(results))
        done = refabric(*run_auto)
        assert done.exit_code == 0, done.output
        assert "link rate at k=4: 20 Mb/s (auto, measured on this machine)" in done.stdout
        assert calibration == [20.0]
        for point in load(results / EXPERIMENT):
            assert point.spec.link.rate_mbps == 20.0
            assert point.provenance["rate_choice"] == "auto, measured on this machine"
        assert "nothing to run" in refabric(*run_auto).stdout

    def test_a_rate_out_of_date_is_measured_again_and_reported(
        self, results: Path, calibration: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calibration.append(5.0)
        monkeypatch.setattr(calibrate, "outdated", lambda *_: "5 Mb/s was measured long ago")
        monkeypatch.setattr(calibrate, "calibrate", lambda *_: 20.0)
        run_auto = ("run", EXPERIMENT, *self.RUN, "--results", str(results))
        done = " ".join(refabric(*run_auto).stdout.split())
        assert "carries at k=4 again: 5 Mb/s was measured long ago" in done
        assert {point.spec.link.rate_mbps for point in load(results / EXPERIMENT)} == {20.0}

    def test_an_unwritable_folder_is_found_before_measuring(
        self, results: Path, calibration: list[float]
    ) -> None:
        results.write_text("")
        assert refabric("run", EXPERIMENT, *self.RUN, "--results", str(results)).exit_code == 2
        assert calibration == []

    def test_a_given_rate_needs_no_measuring(self, results: Path, calibration: list[float]) -> None:
        done = refabric("run", EXPERIMENT, *self.RUN, "--rate", "5", "--results", str(results))
        assert (done.exit_code, calibration) == (0, [])


class TestSignals:
    """Real processes, real signals."""

    @pytest.fixture
    def slow(self, results: Path) -> Iterator[subprocess.Popen[str]]:
        process = start(results, 1.0)
        yield process
        process.kill()
        process.communicate()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_asked_to_stop(self, results: Path, slow: subprocess.Popen[str], number: signal.Signals) -> None:
        wait_for_line(slow, "[1/4] baseline")
        slow.send_signal(number)
        stdout, stderr = slow.communicate(timeout=20)
        assert slow.returncode == 130, stderr
        assert "interrupted: 1 of 4 points are finished and kept" in stdout
        assert "run the same command again" in stdout
        assert stderr == ""
        assert leftovers(results / EXPERIMENT) == []
        done = run(results)
        assert done.exit_code == 0
        assert "4 points, 1 already finished" in done.stdout

    def test_killed(self, results: Path, slow: subprocess.Popen[str]) -> None:
        wait_for_line(slow, "[1/4] baseline")
        folder = results / EXPERIMENT
        until(lambda: _points_begun(folder) != [], 20.0, "the second point is being written")
        slow.kill()
        slow.wait(timeout=20)
        assert len(_points_begun(folder)) == 1
        assert len(list((results / EXPERIMENT).glob("fake-*"))) == 1
        done = run(results)
        assert done.exit_code == 0
        assert "1 already finished" in done.stdout
        assert leftovers(results / EXPERIMENT) == []

    def test_two_runs_at_once_leave_each_other_alone(
        self, results: Path, slow: subprocess.Popen[str]
    ) -> None:
        wait_for_line(slow, "[1/4]")
        assert run(results, "--rate", "20").exit_code == 0
        stdout, _ = slow.communicate(timeout=30)
        assert slow.returncode == 0, stdout
        assert len(list((results / EXPERIMENT).glob("fake-*"))) == 8


def _points_begun(folder: Path) -> list[str]:
    """Return the folders of points that are being written, without the feeds of `refabric watch`."""
    return [name for name in leftovers(folder) if not name.startswith(".tmp-live-")]


def start(results: Path, sleep_s: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", SLOW, str(sleep_s), *RUN, "--results", str(results)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        preexec_fn=as_from_a_terminal,  # noqa: PLW1509 - no thread of ours runs here
    )  # fmt: skip


def as_from_a_terminal() -> None:
    """Restore default signal handling: children inherit the signals that a background test run ignores."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def wait_for_line(process: subprocess.Popen[str], start_of_line: str) -> None:
    """Read stdout until a line begins so. The process ends by itself within seconds, so this does too."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(start_of_line):
            return
    pytest.fail(f"no line began {start_of_line!r}")


@pytest.mark.emulation
def test_a_full_disk_ends_in_one_line_and_the_finished_points(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k,mode=755", "tmpfs", str(disk)], check=True)
    try:
        done = run(disk / "results")
        assert done.exit_code == 3
        assert len(done.stderr.splitlines()) == 1
        assert "No space left on device; free some space" in done.stderr
        assert leftovers(disk / "results" / EXPERIMENT) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)
