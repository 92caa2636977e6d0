"""Runs of the validation experiment: its verdicts on the simulator, in virtual time."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest
from click.testing import Result

from common.errors import HostUnfitError
from engines import registry
from engines.registry import SIMULATOR
from engines.simulation.engine import SimulatorEngine
from experiments.registry import CATALOGUE
from experiments.validation import htsim_reference
from experiments.validation.theory import EXPERIMENT, FIGURES, LOSSES_PCT, RATES_MBPS, SHORTFALL_BYTES
from harness.claims.claims import AGREES, DIFFERS, verdicts
from harness.experiment import Figure
from harness.metrics.metrics import JAIN, LINK_PCT_MEAN
from harness.metrics.published import Source, known_as
from harness.options.options import resolve
from harness.options.rates import FIXED
from harness.plan.session import make_plan
from harness.results import point_results
from harness.results.point_results import judge
from harness.results.store import Store, load
from model.spec import LINUX, RunSpec, StackSpec
from tests.support.fake_engine import FakeEngine
from tests.support.figures import events_of, points_of, refabric, simulate
from tests.support.stored_points import put

pytestmark = pytest.mark.usefixtures("in_this_process")


FIGURE_OF = {figure.name.removeprefix("validation-"): figure for figure in FIGURES}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_brief_profile_does_not_cut_what_theory_needs(figure: Figure) -> None:
    assert resolve({"profile": "smoke"}, figure.defaults) == resolve({}, figure.defaults)


@pytest.mark.usefixtures("drawn")
def test_a_figure_runs_alone_with_its_chart_and_report(tmp_path: Path) -> None:
    """tests/experiments/test_verdict_baselines.py runs all of them and checks every verdict."""
    done = refabric("run", "validation-saw", "--results", tmp_path, "--json")
    words = {event["quantity"]: event["verdict"] for event in events_of(done, "verdict")}
    assert words == dict.fromkeys(("window_top_pkts", "saw_rounds", "saw_mean_pct"), AGREES)
    charts = [path.name for path in (tmp_path / "validation" / "charts").rglob("*.svg")]
    assert len(charts) == 1 and (tmp_path / "validation" / "report-validation-saw.html").is_file()


def test_points_are_those_asked_for_or_all_and_no_more_than_real_hosts_carry() -> None:
    fill, loss = FIGURE_OF["fill"], FIGURE_OF["loss"]
    assert [spec.link.rate_mbps for spec in points_of(fill)] == list(RATES_MBPS)
    assert [spec.link.rate_mbps for spec in points_of(fill, rate="50")] == [50.0]
    assert [100 * spec.link.loss for spec in points_of(loss)] == pytest.approx(LOSSES_PCT)
    assert [100 * spec.link.loss for spec in points_of(loss, loss=1.0)] == pytest.approx([1.0])
    assert max(spec.link.rate_mbps for spec in points_of(fill, engine="mininet")) == 100.0
    assert [spec.link.rate_mbps for spec in points_of(fill, engine="mininet", rate="500")] == [500.0]


def test_no_baseline_is_run_for_figures_without_percentages() -> None:
    plan = make_plan(CATALOGUE.find("validation-saw"), {}, SimulatorEngine())
    assert [job.spec.workload.matrix for job in plan.jobs] == ["against_tcp"]
    assert plan.figures[0].rate_of(plan.figures[0].topologies[0]).how == FIXED


def test_a_byte_too_few_is_found(tmp_path: Path) -> None:
    """The statement detects what it claims to: one byte, at one rate."""
    figure = FIGURE_OF["fill"]
    store = Store.open(tmp_path, EXPERIMENT.folder)
    for spec in points_of(figure, rate="10"):
        result = simulate(spec, tmp_path)
        if spec.link.rate_mbps == 10.0:
            flow = dataclasses.replace(result.flows[0], bytes_received=result.flows[0].bytes_received - 1)
            result = dataclasses.replace(result, flows=(flow,))
        put(store, spec, result)
    points = point_results.judge(load(store.directory))
    (verdict,) = (v for v in verdicts(figure, points) if v.published.metric is SHORTFALL_BYTES)
    assert verdict.word == DIFFERS and verdict.measured is not None
    assert verdict.measured.value == pytest.approx(1.0, abs=1e-6)


def test_statements_on_real_hosts_wait_for_real_hosts(tmp_path: Path) -> None:
    """They have rows of their own, with tolerances of their own, once real hosts ran."""
    figure = FIGURE_OF["saw"]
    assert {v.published.engine for v in verdicts(figure, [])} == {SIMULATOR}
    store = Store.open(tmp_path, EXPERIMENT.folder)
    (spec,) = points_of(figure)
    put(store, dataclasses.replace(spec, engine="mininet"), simulate(spec, tmp_path))
    points = point_results.judge(load(store.directory))
    found = verdicts(figure, points)
    assert {v.published.engine for v in found} == {"mininet"}


HTSIM_FIGURES = htsim_reference.EXPERIMENT.figures


def test_points_are_set_up_as_htsim_is() -> None:
    for figure, acks in zip(HTSIM_FIGURES, ("routed", "at_once"), strict=True):
        specs = points_of(figure)
        assert {(spec.engine, spec.stack.acks) for spec in specs} == {(SIMULATOR, acks)}
        assert {spec.link.queue_bytes for spec in specs} == {150_000}
        assert {spec.link.random_pkts for spec in specs} == {3}
        assert {spec.stack.payload_bytes + spec.stack.header_bytes for spec in specs} == {1500}
        assert len({spec.seed for spec in specs}) >= 6


def test_a_reference_is_never_called_published() -> None:
    for figure in CATALOGUE.find("htsim-reference").figures:
        assert known_as(figure.published) == "reference"
        assert {row.source for row in figure.published} == {Source.REFERENCE}


def test_every_subflow_count_has_a_mean_and_an_index() -> None:
    for figure, row in zip(HTSIM_FIGURES, (htsim_reference.ROUTED, htsim_reference.AT_ONCE), strict=True):
        assert figure.defaults["transport.subflows"] == tuple(row)
        for n in row:
            tolerances = {p.metric: p.tolerance for p in figure.published if p.subflows == n}
            assert tolerances == {LINK_PCT_MEAN: 3.0, JAIN: 0.02}


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


def cross_check(command: str, results: Path, *more: str) -> Result:
    return refabric(command, *RUN, "--results", results, *more)


def stored(results: Path) -> list[RunSpec]:
    return [point.spec for point in load(results / "cross-check")]


@pytest.mark.usefixtures("drawn")
def test_every_point_runs_in_both_engines_and_is_compared(results: Path) -> None:
    done = cross_check("run", results)
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
    again = cross_check("run", results)
    assert again.exit_code == 0
    assert "[1/" not in again.output


def test_without_root_the_simulator_runs_and_reports_what_is_missing(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: Unfit("mininet"))
    done = cross_check("run", results)
    assert done.exit_code == 1
    lines = [line for line in done.output.splitlines() if "not run: 4 points of engine mininet" in line]
    assert lines and all(NEEDS_ROOT in line for line in lines)
    assert {spec.engine for spec in stored(results)} == {"simulator"}
    states = [line["status"] for line in events_of(cross_check("status", results, "--json"))]
    assert sorted(states) == ["missing"] * 4 + ["ok"] * 4
    assert cross_check("plan", results).output.count("finished") == 4
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: FakeEngine("mininet"))
    completed = cross_check("run", results)
    assert completed.exit_code == 0
    assert "[6/6]" in completed.output, "a made-up baseline is not as computed: it is tried three times"
    with (results / "cross-check" / "summary.csv").open() as file:
        assert [row["engine"] for row in csv.DictReader(file)] == ["mininet"] * 4 + ["simulator"] * 4


def test_without_any_engine_nothing_starts(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mininet", "simulator"):
        monkeypatch.setitem(registry.ENGINES, name, Unfit)
    done = cross_check("run", results)
    assert (done.exit_code, done.stderr) == (3, f"refabric: {NEEDS_ROOT}\n")
    assert not results.exists()


def test_without_the_machine_no_rate_is_measured(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: Unfit("mininet"))
    monkeypatch.setattr("engines.emulation.calibrate.cached", lambda *_: None)
    done = cross_check("run", results, "--rate", "auto")
    assert done.exit_code == 1
    assert {spec.link.rate_mbps for spec in stored(results)} == {10.0}


def test_json_has_the_points_of_both(results: Path) -> None:
    events = events_of(cross_check("run", results, "--json"), "verdict")
    verdicts = {(event["quantity"], event["algorithm"]): event for event in events if event["k"] == 4}
    assert verdicts["across_spearman", "tcp"]["verdict"] == "agrees"
    assert verdicts["across_mean", "lia"]["measured"]["value"] == pytest.approx(0)


def test_each_engine_can_run_by_itself(results: Path) -> None:
    assert cross_check("run", results, "--engine", "simulator").exit_code == 0
    assert {spec.engine for spec in stored(results)} == {"simulator"}
    assert cross_check("run", results, "--engine", "mininet").exit_code == 0
    assert len(point_results.pairs(judge(load(results / "cross-check")))) == 3
    whole = cross_check("run", results)
    assert whole.exit_code == 0
    assert "[1/" not in whole.output


def test_a_suspect_emulation_is_no_verdict(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = FakeEngine("mininet", suspect=lambda spec: spec.transport.subflows == 1)
    monkeypatch.setitem(registry.ENGINES, "mininet", lambda: late)
    done = cross_check("run", results, "--json")
    assert done.exit_code == 1
    assert {event["verdict"] for event in events_of(done, "verdict") if event["k"] == 4} == {"suspect"}


def test_linux_in_virtual_time_stands_for_real_hosts_and_is_compared_with_them(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENGINES, "linux", lambda: FakeEngine("linux"))
    for engines, expected in (
        ("simulator,linux", {("linux", "simulator")}),
        ("mininet,simulator,linux", {("mininet", "simulator"), ("mininet", "linux")}),
    ):
        done = cross_check("run", results, "--engine", engines, "--subflows", "1,8")
        assert done.exit_code == 0, done.output
        found = point_results.pairs(judge(load(results / "cross-check")))
        assert {(pair.emulated.spec.engine, pair.simulated.spec.engine) for pair in found} == expected
