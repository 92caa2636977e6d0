"""Figures of one folder: shared points, each figure's own points, and points that are suspect on purpose."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from common.errors import UsageError
from engines import registry as engines
from engines.emulation import calibrate
from engines.engine import Engine, Observer, Silent
from experiments.registry import EXPERIMENTS
from harness.load import load
from harness.options.options import SweepOptions, resolve
from harness.plan import session
from harness.plan.jobs import Plan
from harness.plan.machines import ThisMachine
from harness.results import store
from model.result import RunResult, Status
from model.spec import ELASTIC, STRICT, RunSpec, SamplingSpec, TopologySpec
from tests.support.command import objects, refabric
from tests.support.fake_engine import FakeEngine
from tests.support.options import options_typed
from tests.support.reasons import of_text

POST = EXPERIMENTS["cs244"]
SMOKE = ("--engine", "fake", "--profile", "smoke")
CPU = "CPU: no idle time left in 8 of 8 seconds"
NO_CPU = "subflows: 3 of 16 flows had fewer than 8, the worst 5"


@dataclasses.dataclass
class Saturated(FakeEngine):
    """A machine on which points of `from_mbps` or more are suspect, for `reason`."""

    from_mbps: float = 100.0
    reason: str = CPU

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        result = super().run(spec, observer, raw)
        if spec.link.rate_mbps < self.from_mbps:
            return result
        return dataclasses.replace(result, status=Status.SUSPECT, reasons=(of_text(self.reason),))


def use(monkeypatch: pytest.MonkeyPatch, engine: Callable[[], Engine]) -> None:
    monkeypatch.setitem(engines.ENGINES, "fake", engine)


def run(results: Path, experiment: str, *more: str) -> Result:
    return refabric("run", experiment, *SMOKE, "--results", str(results), *more)


def plan_of(experiment: str, **typed: Any) -> Plan:
    return session.make_plan(EXPERIMENTS[experiment], options_typed(engine="fake", **typed), FakeEngine())


def options_of(experiment: str, **typed: Any) -> SweepOptions:
    (figure,) = EXPERIMENTS[experiment].figures
    return resolve(options_typed(**typed), figure.defaults)


def specs_of(experiment: str, **typed: Any) -> list[RunSpec]:
    (part,) = plan_of(experiment, **typed).figures
    return list(part.specs)


class TestThePost:
    def test_every_figure_is_there_alone_and_in_the_whole(self) -> None:
        names = [f"cs244-fig{number}" for number in range(1, 14)]
        assert [figure.name for figure in POST.figures] == names
        for name, figure in zip(names, POST.figures, strict=True):
            assert EXPERIMENTS[name].figures == (figure,)
            assert EXPERIMENTS[name].folder == POST.folder

    def test_points_that_figures_share_are_planned_once(self) -> None:
        whole = plan_of("cs244")
        names = [job.name for job in whole.jobs]
        assert len(names) == len(set(names))
        assert set(names) == set().union(*(part.names for part in whole.figures))
        one, three, four = (plan_of(f"cs244-fig{n}").figures[0].names for n in (1, 3, 4))
        assert one == three > four

    def test_a_shared_point_samples_what_any_of_its_figures_asks_for(self) -> None:
        jobs = {job.name: job for job in plan_of("cs244").jobs}
        for name in plan_of("cs244-fig12").figures[0].names:
            asked = jobs[name].spec
            if asked.workload.matrix != "reference":
                assert asked.sampling.covers(SamplingSpec(100, 200, 1000))

    @pytest.mark.parametrize(
        ("figure", "ks", "subflows", "queue_pkts", "rates"),
        [
            ("cs244-fig1", {8}, range(1, 9), 100, {10.0}),
            ("cs244-fig2", {6}, range(1, 9), 100, {10.0}),
            ("cs244-fig4", {8}, (1, 8), 100, {10.0}),
            ("cs244-fig5", {4, 6, 8, 10, 12}, (1, 2, 4, 6, 8), 100, {20.0}),
            ("cs244-fig6", {8}, range(1, 9), 100, {40.0}),
            ("cs244-fig7", {10, 12}, range(1, 9), 100, {20.0}),
            ("cs244-fig8", {4}, range(1, 9), 100, {1000.0}),
            ("cs244-fig9", {8}, (1,), 0, {1.0}),
            ("cs244-fig11", {8}, (1, 8), 100, {1.0}),
            ("cs244-fig13", {4}, range(1, 9), 100, {10.0}),
        ],
    )
    def test_what_figures_run(
        self, figure: str, ks: set[int], subflows: range, queue_pkts: int, rates: set[float]
    ) -> None:
        specs = specs_of(figure)
        assert {spec.topology.k for spec in specs} == ks
        assert {spec.transport.subflows for spec in specs} == set(subflows)
        assert {(spec.link.queue_pkts, spec.link.nic_queue_pkts) for spec in specs} == {(queue_pkts,) * 2}
        assert {spec.link.rate_mbps for spec in specs} == rates


class TestPrecedence:
    def test_an_option_goes_before_what_a_figure_pins(self) -> None:
        own = options_of("cs244-fig9", rate="100", queue=50, warmup=3.0, seconds=10.0, k="4", subflows="2")
        assert (own.ks, own.subflows, own.rate_mbps) == ((4,), (2,), 100.0)
        assert (own.base.link.queue_pkts, own.base.warmup_s, own.base.seconds) == (50, 3.0, 10.0)
        assert options_of("cs244-fig9", rate="auto").rate_mbps is None
        assert options_of("cs244-fig3", queue=0).base.link.queue_pkts == 0

    def test_what_a_figure_pins_goes_before_the_profile(self) -> None:
        smoke = options_of("cs244-fig9", profile="smoke")
        assert (smoke.rate_mbps, smoke.base.link.queue_pkts, smoke.base.warmup_s) == (1.0, 0, 0.0)
        assert (smoke.ks, smoke.base.seconds) == ((4,), 25.0), "size and time are the profile's"
        assert options_of("cs244-fig3", profile="smoke").rate_mbps is None
        assert options_of("cs244-fig3", profile="smoke", engine="simulator").rate_mbps == 10.0

    def test_sampling_covers_the_figure_and_the_options(self) -> None:
        assert options_of("cs244-fig3").base.sampling == SamplingSpec(0, 1000, 1000)
        assert options_of("cs244-fig3", qmon=True).base.sampling == SamplingSpec(100, 1000, 1000)
        assert options_of("cs244-fig12").base.sampling == SamplingSpec(100, 200, 1000)

    def test_every_option_works_with_every_figure(self) -> None:
        for name, experiment in EXPERIMENTS.items():
            if experiment.shared_options is not None:
                continue  # its figures take them one by one
            sized = all(figure.sized for figure in experiment.figures)
            plan = plan_of(
                name, k="4" if sized else None, rate="7", seconds=3.0, queue=90, subflows="1,3", seeds=2
            )
            for part in plan.figures:
                settings = {(s.link.rate_mbps, s.seconds, s.link.queue_pkts) for s in part.specs}
                assert settings == {(7.0, 3.0, 90)}
                repeated = {(s.transport.subflows, s.seed) for s in part.specs}
                assert repeated == {(1, 1), (1, 2), (3, 1), (3, 2)}

    def test_rates_not_yet_measured_do_not_merge_points(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calibrate, "cached", lambda *_: None)
        unknown = session.make_plan(POST, {}, FakeEngine(name="mininet"))
        assert not unknown.certain
        assert len(unknown.jobs) == len(plan_of("cs244").jobs)


def test_a_network_is_measured_once_for_all_figures(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(topology: TopologySpec, _observer: Observer, _engine: Engine, _highest: float) -> float:
        measured.append(topology.k)
        return 10.0

    monkeypatch.setattr(calibrate, "cached", lambda *_: None)
    monkeypatch.setattr(calibrate, "calibrate", measure)
    machine = ThisMachine(FakeEngine(name="mininet"))
    ready = session.prepare(POST, {}, machine, results, False, Silent())
    assert sorted(measured) == [4, 6, 8]
    assert {part.rate_of(t).rate_mbps for part in ready.plan.figures for t in part.topologies} == {
        1.0, 10.0, 20.0, 40.0, 1000.0,
    }  # fmt: skip


class TestWhoseAPointIs:
    def test_each_figure_shows_its_own(self, results: Path) -> None:
        for figure in ("cs244-fig3", "cs244-fig8", "cs244-fig13"):
            assert run(results, figure).exit_code == 0
        whole = load(POST, results, plan_of("cs244"))
        shown = {each.figure.name: each.points for each in whole.figures}
        assert {p.spec.link.rate_mbps for p in shown["cs244-fig3"]} == {10.0}
        assert {p.spec.link.rate_mbps for p in shown["cs244-fig8"]} == {1000.0}
        assert len(shown["cs244-fig3"]) == 4, "the baseline, TCP, 2 and 8 subflows"
        assert shown["cs244-fig9"] == ()
        assert len(whole.points) == 11, "two of them share their baseline"

    def test_a_figure_never_run_shows_what_others_ran_for_it(self, results: Path) -> None:
        run(results, "cs244-fig3", "--k", "8", "--rate", "10", "--seconds", "40", "--warmup", "20")
        figure = load(EXPERIMENTS["cs244-fig4"], results, plan_of("cs244-fig4")).figures[0]
        assert {p.spec.transport.subflows for p in figure.points} == {1, 8}

    def test_a_damaged_note_is_named_and_costs_nothing_else(self, results: Path) -> None:
        run(results, "cs244-fig3")
        note = results / "cs244" / store.MANIFESTS / "cs244-fig3.json"
        note.write_text("{")
        done = refabric("status", "cs244-fig3", *SMOKE, "--results", str(results))
        assert str(note) in done.stderr and len(done.stderr.splitlines()) == 1
        assert "4 of 4 planned points finished" in done.stdout
        assert "nothing to run" in run(results, "cs244-fig3").stdout
        assert refabric("status", "cs244-fig3", *SMOKE, "--results", str(results)).stderr == ""

    def test_status_of_a_figure_leaves_other_figures_points_out(self, results: Path) -> None:
        run(results, "cs244-fig3")
        run(results, "cs244-fig8")
        done = refabric("status", "cs244-fig8", *SMOKE, "--results", str(results))
        assert "not of this plan" not in done.stdout
        assert "4 of 4 planned points finished; 4 stored in all" in done.stdout


class TestCpuBound:
    """fig8 means to overload the machine; fig3 does not."""

    def test_suspect_as_intended_is_no_failure(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use(monkeypatch, Saturated)
        done = run(results, "cs244-fig8", "--json")
        assert done.exit_code == 0
        assert {point["status"] for point in objects(done, "point")} == {"suspect"}
        status = refabric("status", "cs244-fig8", *SMOKE, "--results", str(results))
        assert "as intended" in done.stderr and "as intended" in status.stdout
        (verdict,) = objects(done, "verdict")
        assert (verdict["verdict"], verdict["measured"]["suspect"]) == ("differs", True)

    @pytest.mark.parametrize(
        ("figure", "machine"),
        [("cs244-fig8", Saturated(reason=NO_CPU)), ("cs244-fig3", Saturated(from_mbps=5.0))],
    )
    def test_other_reasons_and_figures_that_do_not_mean_it_are_not_intended(
        self, results: Path, monkeypatch: pytest.MonkeyPatch, figure: str, machine: Saturated
    ) -> None:
        use(monkeypatch, lambda: machine)
        done = run(results, figure)
        assert done.exit_code == 1
        assert "as intended" not in done.stdout

    def test_they_run_by_the_strict_clock_and_what_they_share_is_ordinary(self) -> None:
        """The elastic clock would hide what too little CPU time costs."""
        plan = plan_of("cs244", rate="10")
        meant = {job.name for job in plan.jobs if job.cpu_bound}
        strict = {job.name for job in plan.jobs if job.spec.clock == STRICT}
        names = {part.figure.name: part.names for part in plan.figures}
        overloaded = set().union(*(names[f"cs244-fig{n}"] for n in (5, 6, 7, 8)))
        shared = overloaded & set().union(*(names[f"cs244-fig{n}"] for n in (1, 2, 3, 4, 13)))
        assert shared and not shared & meant, "baselines"
        assert strict and strict <= meant <= overloaded
        assert names["cs244-fig3"].isdisjoint(strict)

    @pytest.mark.parametrize("typed", [{"clock": "elastic"}, {"dataplane": "ovs", "rate": "1"}])
    def test_the_clock_of_the_user_and_of_a_data_plane_without_one_is_elastic(
        self, typed: dict[str, str]
    ) -> None:
        assert {job.spec.clock for job in plan_of("cs244-fig8", **typed).jobs} == {ELASTIC}

    def test_a_machine_that_carries_it_gets_advice(self, results: Path) -> None:
        done = run(results, "cs244-fig8", "--json")
        assert done.exit_code == 0
        (verdict,) = objects(done, "verdict")
        assert verdict["verdict"] == "not measured"
        assert "--rate" in verdict["why"]


class TestShown:
    def test_a_verdict_after_a_run_takes_in_earlier_runs_of_the_same_setting(self, results: Path) -> None:
        once = ("--subflows", "1", "--json")
        assert objects(run(results, "cs244-fig13", *once), "verdict")[2]["verdict"] == "not measured"
        six = objects(run(results, "cs244-fig13", "--subflows", "6", "--json"), "verdict")
        assert [verdict["measured"]["n"] for verdict in six] == [1, 1, 1], "TCP's point is there already"
        longer = objects(run(results, "cs244-fig13", "--seconds", "9", *once), "verdict")
        assert longer[2]["verdict"] == "not measured", "another setting"

    def test_a_parameter_of_a_workload_is_another_point_with_another_name(self, results: Path) -> None:
        done = run(results, "cs244-fig13", "--workload", "one_to_several:2,stride:4,hotspot:percent=25")
        assert done.exit_code == 0
        names = {path.name for path in (results / "cs244").iterdir()}
        for part in ("one_to_several_2", "stride_4", "hotspot_2_percent25"):
            assert any(f"-{part}-" in name for name in names), part
        assert "hotspot:2:percent=25" in (results / "cs244" / "summary.csv").read_text()

    @pytest.mark.usefixtures("sketched")
    def test_the_whole_post_runs_and_draws_one_folder_per_figure(self, results: Path) -> None:
        done = run(results, "cs244", "--subflows", "8", "--seconds", "2")
        assert done.exit_code == 0, done.output
        drawn = {path.parent.name for path in (results / "cs244" / "charts").glob("*/*.svg")}
        assert drawn == {figure.name for figure in POST.figures}

    @pytest.mark.usefixtures("sketched")
    def test_what_was_run_with_options_stays_the_figure_s(self, results: Path) -> None:
        run(results, "cs244-fig8", "--rate", "100", "--seconds", "2")
        done = refabric("plot", "cs244-fig8", "--results", str(results), "--json")
        assert done.exit_code == 0
        charts = [Path(path) for event in objects(done, "charts") for path in event["charts"]]
        assert charts and {path.parent for path in charts} == {results / "cs244" / "charts" / "cs244-fig8"}
        nothing = refabric("plot", "cs244-fig6", "--results", str(results))
        assert (nothing.exit_code, len(nothing.stderr.splitlines())) == (2, 1)
        assert "refabric run cs244-fig6" in nothing.stderr


def test_unbounded_queues_are_simulated_with_a_receivers_buffer() -> None:
    for name in ("cs244-fig9", "cs244-fig10"):
        (figure,) = EXPERIMENTS[name].figures
        for engine, segments in (("simulator", 2172), ("mininet", 0)):
            points = figure.points(options_of(name, engine=engine), lambda _: 1.0)
            assert {spec.stack.receive_buffer for spec in points} == {segments}


def test_a_size_is_for_the_figures_that_have_a_choice() -> None:
    """BCube's figure has one network; this does not keep the other figures from a choice of size."""
    sizes = {spec.topology.k for part in plan_of("topologies", k="4").figures for spec in part.specs}
    assert 4 in sizes and 8 not in sizes
    with pytest.raises(UsageError, match="leave out --k"):
        plan_of("topologies-bcube", k="4")
