"""The paper whole: its figures, what they share, and which options it takes."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import pytest

from common.errors import UsageError
from engines import registry
from engines.engine import Observer
from engines.registry import VIRTUAL_TIME
from experiments.registry import EXPERIMENTS
from experiments.sigcomm11 import whole
from harness.execute.point import hosts_of
from harness.options.options import PINNED_PART
from harness.plan import session
from harness.plan.jobs import Plan, wall_s
from harness.plan.session import NO_COUNTERPART
from harness.results.store import load
from model.result import RunResult
from model.spec import RunSpec, TopologySpec
from tests.support.fake_engine import FakeEngine
from tests.support.figures import events_of, refabric
from tests.support.options import options_typed

PAPER = whole.EXPERIMENT
SMOKE = ("--profile", "smoke")
BOTH = (*SMOKE, "--engine", "both", "--results")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def plan_of(name: str, **typed: object) -> Plan:
    given = options_typed(**typed)
    return session.make_plan(EXPERIMENTS[name], given)


def engines_of(plan: Plan) -> set[str]:
    return {job.spec.engine for job in plan.jobs}


class TestTheWholePaper:
    def test_every_figure_has_a_section_and_runs_alone_in_the_same_folder(self) -> None:
        assert [f.section for f in PAPER.figures] == [
            section for section, figures in whole.SECTIONS.items() for _ in figures
        ]
        for figure in PAPER.figures:
            assert EXPERIMENTS[figure.name].figures == (figure,)
            assert EXPERIMENTS[figure.name].folder == PAPER.folder

    @pytest.mark.parametrize("typed", [{}, {"profile": "paper"}, {"seed": 3}, {"seeds": 2}])
    def test_the_common_options_suit_all_figures(self, typed: dict[str, object]) -> None:
        parts = plan_of("sigcomm11", engine="simulator", **typed).figures
        assert parts and all(part.specs for part in parts)

    @pytest.mark.parametrize(
        "typed",
        [{"k": "4"}, {"workload": "all"}, {"subflows": "2"}, {"rate": "5"}, {"qmon": True}, {"seconds": 1.0}],
    )
    def test_others_are_one_figures_own(self, typed: dict[str, object]) -> None:
        with pytest.raises(UsageError) as refused:
            plan_of("sigcomm11", **typed)
        (option,) = typed
        assert f"--{option}: every figure of sigcomm11 has its own" in str(refused.value)
        assert "sigcomm11-throughput" in str(refused.value)

    def test_a_figure_alone_takes_what_it_always_took(self) -> None:
        specs = plan_of("sigcomm11-throughput", k="4", subflows="2", seconds=1.0).figures[0].specs
        assert [(s.topology.k, s.transport.subflows, s.seconds) for s in specs] == [(4, 2, 1.0)]


def test_traffic_of_real_hosts_lasts_less_than_19_minutes_in_quick() -> None:
    """Real hosts need real time, so the windows alone bound the time of a run from below."""
    specs = [job.spec for job in plan_of("sigcomm11", engine="both").jobs if job.spec.engine == "mininet"]
    assert 0 < sum(spec.warmup_s + spec.seconds for spec in specs) < 19 * 60


def test_every_figure_of_a_smoke_run_is_small_and_short() -> None:
    for part in plan_of("sigcomm11", profile="smoke", engine="simulator").figures:
        assert part.specs, part.figure.name
        for spec in part.specs:
            assert spec.engine in VIRTUAL_TIME
            assert spec.seconds * spec.link.rate_mbps <= 80 * PINNED_PART, part.figure.name
        assert max(hosts_of(spec) for spec in part.specs) <= 256, part.figure.name


class Logged(FakeEngine):
    """An engine that logs to a file when each of its points begins and ends, from any process."""

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        with (raw.resolve().parents[2] / "log").open("a") as log:
            log.write(f"{self.name} begins\n")
            log.flush()
            result = super().run(spec, observer, raw)
            log.write(f"{self.name} ends\n")
        return result


def carried(topology: TopologySpec, highest_mbps: float) -> float:
    """Return a made-up measurement of the machine: 10 Mb/s at k=4."""
    return min(highest_mbps, 40.0 / topology.k)


class TestBothEngines:
    @pytest.fixture(autouse=True)
    def machine(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        no_rates_of_this_machine = str(tmp_path / "cache")
        monkeypatch.setenv("XDG_CACHE_HOME", no_rates_of_this_machine)
        for name in ("simulator", "flow-level", "max-min"):
            make = functools.partial(Logged, name, parallel=2, sleep_s=0.02)
            monkeypatch.setitem(registry.ENGINES, name, make)
        monkeypatch.setitem(registry.ENGINES, "mininet", lambda: Logged("mininet", sleep_s=0.02))
        monkeypatch.setattr("engines.emulation.calibrate.cached", carried)
        monkeypatch.setattr("os.geteuid", lambda: 0)

    def test_each_engine_has_its_own_size_rate_and_seconds(self) -> None:
        parts = plan_of("sigcomm11-throughput").figures
        simulated, emulated = ({s.engine: s for s in part.specs} for part in parts)
        assert (simulated["simulator"].link.rate_mbps, simulated["simulator"].seconds) == (100.0, 4.0)
        assert (emulated["mininet"].link.rate_mbps, emulated["mininet"].seconds) == (5.0, 60.0)
        sizes = {e: s.topology.k for p in plan_of("sigcomm11-congestion-controls").figures for e, s in
                 ((s.engine, s) for s in p.specs)}  # fmt: skip
        assert sizes == {"simulator": 8, "mininet": 4}

    def test_both_is_the_default_with_root_and_otherwise_a_line_says_how(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert engines_of(plan_of("sigcomm11")) == {"simulator", "flow-level", "max-min", "mininet"}
        assert engines_of(plan_of("sigcomm11", engine="both")) == engines_of(plan_of("sigcomm11"))
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        unprivileged = plan_of("sigcomm11")
        assert engines_of(unprivileged) == {"simulator", "flow-level", "max-min"}
        (line,) = unprivileged.left_out()
        assert "sudo .venv/bin/refabric run sigcomm11" in line

    def test_figures_without_a_counterpart_are_simulated_only_and_reported(self) -> None:
        plan = plan_of("sigcomm11", engine="both")
        (line,) = plan.left_out()
        assert line.endswith(NO_COUNTERPART)
        names = line.split(":")[0].split(", ")
        assert names == [f.name for f in PAPER.figures if f.emulated is None]
        emulated = plan_of("sigcomm11", engine="mininet")
        assert engines_of(emulated) == {"mininet"}
        assert emulated.left_out() == plan.left_out()
        with pytest.raises(UsageError, match="simulated only"):
            plan_of("sigcomm11-flow-level", engine="mininet")

    def test_the_simulator_is_all_engines_in_virtual_time_that_a_figure_compares(self) -> None:
        assert engines_of(plan_of("sigcomm11-flow-level", engine="simulator")) == {
            "simulator", "flow-level", "max-min",
        }  # fmt: skip

    def test_each_engine_gets_its_own_options(self) -> None:
        halved = plan_of(
            "sigcomm11-congestion-controls", engine="both", traffic="native", stack=("sack=off",)
        )
        simulated, emulated = (part.specs[0] for part in halved.figures)
        assert (simulated.stack.sack, emulated.stack.sack) == (False, True)
        assert (simulated.traffic, emulated.traffic) == ("iperf3", "native")

    def test_simulations_share_the_machine_before_emulations_have_it_one_by_one(self, results: Path) -> None:
        name = "sigcomm11-congestion-controls"
        run = ("run", name, "--results", str(results), "--seconds", "1", "--warmup", "0", "--seeds", "1")
        done = refabric(*run)
        assert done.exit_code == 0, done.output
        log = (results / "log").read_text().splitlines()
        first = log.index("mininet begins")
        assert {line.split()[0] for line in log[:first]} == {"simulator"}
        assert log[:first].count("simulator ends") == log[:first].count("simulator begins") > 2
        assert log[first:] == ["mininet begins", "mininet ends"] * (len(log[first:]) // 2)
        assert refabric(*run).exit_code == 0
        assert (results / "log").read_text().splitlines() == log, "nothing runs twice"

    def test_what_is_planned_takes_as_long_as_its_waves(self) -> None:
        jobs = plan_of("sigcomm11-throughput", engine="both").jobs
        shared = [job.expected_s for job in jobs if job.spec.engine == "simulator"]
        alone = [job.expected_s for job in jobs if job.spec.engine == "mininet"]
        assert wall_s(jobs) == pytest.approx(sum(shared) / 2 + sum(alone))
        assert wall_s(jobs[:1]) == jobs[0].expected_s


class TestRunning:
    @pytest.fixture(autouse=True)
    def short_paper(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two of its figures, both simulated and emulated, on made-up machines."""
        some = dataclasses.replace(PAPER, figures=PAPER.figures[:2])
        monkeypatch.setitem(EXPERIMENTS, PAPER.name, some)
        self.use(monkeypatch)
        monkeypatch.setattr("engines.emulation.calibrate.cached", carried)
        monkeypatch.setattr("engines.emulation.calibrate.outdated", lambda *_: "")

    @staticmethod
    def use(monkeypatch: pytest.MonkeyPatch, **emulated: Any) -> None:
        monkeypatch.setitem(registry.ENGINES, "simulator", lambda: FakeEngine("simulator"))
        monkeypatch.setitem(registry.ENGINES, "mininet", lambda: FakeEngine("mininet", **emulated))

    def test_ends_with_every_claim_in_json_too_and_one_page(self, results: Path) -> None:
        done = refabric("run", "sigcomm11", *BOTH, str(results))
        assert done.exit_code == 0, done.output
        assert "(5 claims)" in done.output
        page = (results / "sigcomm11" / "report.html").read_text()
        assert 'href="#sigcomm11-throughput"' in page
        assert page.count("at k=4, 10 Mb/s links") == 5 + 2 * 5, "in the contents and at both figures"
        claims = events_of(refabric("run", "sigcomm11", *BOTH, results, "--json"), "claim")
        assert len(claims) == 5
        assert all(claim["simulated"] and claim["emulated"] for claim in claims)
        assert events_of(refabric("report", "sigcomm11", "--results", results, "--json"))[:-1] == claims

    def test_an_interrupted_run_loses_nothing(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = ("run", "sigcomm11", "--retry-suspect", "0", *BOTH, str(results))
        self.use(monkeypatch, interrupt=with_eight_subflows)
        first = refabric(*run)
        assert first.exit_code == 130
        kept = {point.name for point in load(results / "sigcomm11")}
        assert {point.spec.engine for point in load(results / "sigcomm11")} == {"simulator", "mininet"}
        assert f"interrupted: {len(kept)} of " in first.output
        self.use(monkeypatch)
        second = refabric(*run)
        assert second.exit_code == 0, second.output
        all_of_it = {point.name for point in load(results / "sigcomm11")}
        assert kept < all_of_it
        assert f"[{len(all_of_it - kept)}/{len(all_of_it - kept)}]" in second.output
        assert "nothing to run" in refabric(*run).output

    def test_the_page_survives_what_is_suspect_failed_or_missing(
        self, results: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.use(monkeypatch, suspect=with_eight_subflows, fail=is_tcp)
        done = refabric("run", "sigcomm11", *BOTH, str(results))
        assert done.exit_code == 1
        page = (results / "sigcomm11" / "report.html").read_text()
        assert "this point is set to be suspect" in page
        assert "Failed points" in page
        assert refabric("report", "sigcomm11", "--results", str(results)).exit_code == 0

    def test_emulated_results_stay_in_the_page_of_a_simulated_run(self, results: Path) -> None:
        refabric("run", "sigcomm11", *SMOKE, "--engine", "mininet", "--results", str(results))
        done = refabric("run", "sigcomm11", *SMOKE, "--engine", "simulator", "--results", str(results))
        assert done.exit_code == 0
        page = (results / "sigcomm11" / "report.html").read_text()
        assert "at k=4, 10 Mb/s links" in page


def with_eight_subflows(spec: RunSpec) -> bool:
    return spec.transport.subflows == 8


def is_tcp(spec: RunSpec) -> bool:
    return spec.transport.subflows == 1 and spec.workload.matrix != "reference"
