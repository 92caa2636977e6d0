"""Planning a sweep: jobs, rates of finished points, refusals, guests and the kernel that they lack."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from common.errors import BusyError, HostUnfitError, NoKernelError, RunError, UsageError
from engines.engine import Observer, Silent
from engines.registry import LINUX, MININET, VIRTUAL_TIME, Engines
from experiments.registry import EXPERIMENTS
from harness.baseline import is_baseline
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import run
from harness.experiment import Experiment, Figure
from harness.options.options import SweepOptions, resolve
from harness.options.rates import (
    GUEST_MBPS,
    SETTLING_MBIT,
    SIMULATED_MBPS,
    WINDOW_MBIT,
    RateChoice,
    long_enough,
)
from harness.plan import machines, session
from harness.plan.jobs import Job, jobs_of, remaining_s
from harness.plan.machines import MEASURED, ThisMachine, unfit_here
from harness.plan.session import PLACEHOLDER_MBPS, Session
from harness.results import run_json
from harness.results.store import Store, scan
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, SchedulerSpec, Settings, TopologySpec, TransportSpec
from tests.support.command import refabric
from tests.support.fake_engine import FakeEngine
from tests.support.options import options_typed
from tests.support.recorded_progress import Recorder
from tests.support.stored_points import put, result_of, spec_of

ENGINE = FakeEngine(name="mininet")
PAPER = EXPERIMENTS["sigcomm11-throughput"]
ONE = EXPERIMENTS["cs244-one-to-one"]
SMALL = options_typed(k="4", subflows="1,8")


class Lab(ThisMachine):
    """A machine that was never calibrated and carries these Mb/s by k, and no network of another k."""

    def __init__(self, carried: dict[int, float | None]) -> None:
        super().__init__(ENGINE)
        self.carried = carried
        self.asked: list[int] = []

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        if VIRTUAL_TIME.issuperset(names):
            return super().known_rate(topology, names, highest_mbps)
        return RateChoice(None, machines.TO_BE_MEASURED)

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        if VIRTUAL_TIME.issuperset(names):
            return self.known_rate(topology, names, highest_mbps)
        del observer
        self.asked.append(topology.number("k"))
        if topology.number("k") not in self.carried:
            raise HostUnfitError(f"this machine does not carry k={topology.params['k']}")
        return RateChoice(self.carried[topology.number("k")], MEASURED)


def prepared(
    experiment: Experiment, given: Settings, lab: Lab, results: Path, force: bool = False
) -> Session:
    return session.prepare(experiment, given, lab, results, force, Silent())


def real(jobs: list[Job]) -> Iterator[float]:
    return (job.spec.link.rate_mbps for job in jobs if job.spec.engine == "mininet")


def test_finished_simulations_do_not_stand_for_a_rate_of_real_hosts(tmp_path: Path) -> None:
    typed = options_typed(engine="both", profile="smoke")
    store = Store.open(tmp_path, PAPER.folder)
    for job in session.make_plan(PAPER, typed, ENGINE).jobs:
        if job.spec.engine in VIRTUAL_TIME:
            put(store, job.spec, result_of([1.0]))
    rates = set(real(prepared(PAPER, typed, Lab({4: 5.0, 8: 5.0}), tmp_path).jobs))
    assert rates == {5.0}
    assert PLACEHOLDER_MBPS not in rates


def test_a_point_without_a_rate_never_reaches_the_sweep(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its link rate is not known"):
        prepared(ONE, SMALL, Lab({4: None}), tmp_path)


def test_a_begun_sweep_goes_on_at_its_rate_whatever_the_machine_carries_now(tmp_path: Path) -> None:
    first = prepared(ONE, options_typed(k="4", subflows="1"), Lab({4: 10.0}), tmp_path)
    run(first.jobs, partial(LocalExecutor, ENGINE), first.store, first.found, Recorder())
    assert {entry.rate_choice for entry in scan(tmp_path / ONE.folder).points} == {MEASURED}
    later = Lab({4: 50.0})
    assert set(real(prepared(ONE, SMALL, later, tmp_path).jobs)) == {10.0}
    assert later.asked == [], "nothing is measured"
    stored = scan(tmp_path / ONE.folder).points
    assert set(real(session.make_plan(ONE, SMALL, ENGINE, stored).jobs)) == {10.0}
    assert set(real(prepared(ONE, SMALL, later, tmp_path, force=True).jobs)) == {50.0}
    other = options_typed(k="4", subflows="1,8", seconds=7.0)
    assert set(real(prepared(ONE, other, later, tmp_path).jobs)) == {50.0}, "another window, another sweep"


def test_the_newest_points_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day, mbps in enumerate((20.0, 10.0), 1):
        now = f"2026-01-0{day}T12:00:00Z"
        monkeypatch.setattr(run_json, "utc_now", lambda now=now: now)
        ready = prepared(ONE, SMALL, Lab({4: mbps}), tmp_path, force=True)
        run(ready.jobs, partial(LocalExecutor, ENGINE), ready.store, ready.found, Recorder(), force=True)
    assert set(real(prepared(ONE, SMALL, Lab({}), tmp_path).jobs)) == {10.0}


def test_a_network_that_is_not_carried_is_left_out_and_the_others_run(tmp_path: Path) -> None:
    ready = prepared(ONE, options_typed(k="4,8", subflows="1,8"), Lab({4: 5.0}), tmp_path)
    assert {job.spec.topology.k for job in ready.jobs} == {4}
    assert ready.lacking == ["not run: 2 points, because this machine does not carry k=8"]
    outcome = run(ready.jobs, partial(LocalExecutor, ENGINE), ready.store, ready.found, Recorder())
    assert len(ready.plan.jobs) > len(outcome.points) == 3


def test_where_nothing_is_carried_nothing_is_run(tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match="does not carry k=4"):
        prepared(ONE, SMALL, Lab({}), tmp_path)


WHOLE, REFUSED = EXPERIMENTS["ccp"], "ccp-completion"
SIZED = "star"


class Small(FakeEngine):
    """An engine that refuses flows with sizes, of which ccp-completion has too many."""

    def check(self, spec: RunSpec) -> None:
        if spec.topology.kind == SIZED and spec.link.rate_mbps < 1000:
            raise UsageError("too many flows")


class Large(FakeEngine):
    """An engine that takes everything, as the simulator does here."""

    name = "simulator"

    def check(self, spec: RunSpec) -> None:
        del spec


class Tiny(FakeEngine):
    """An engine that refuses everything."""

    def check(self, spec: RunSpec) -> None:
        raise UsageError(f"too large: {spec.topology.kind}")


def engine(of: FakeEngine) -> Engines:
    return Engines({"fake": of})


def asked(**typed: str) -> Settings:
    return options_typed(engine="fake", **typed)


def names(jobs: list[Job]) -> list[str]:
    return [job.name for job in jobs]


def test_a_figure_that_does_not_suit_is_left_out_with_the_reason() -> None:
    plan = session.checked_plan(WHOLE, asked(), engine(Small()))
    assert f"{REFUSED}: not run in fake: too many flows" in plan.left_out()
    assert {part.figure.name for part in plan.figures} == {f.name for f in WHOLE.figures} - {REFUSED}
    everything = session.make_plan(WHOLE, asked(), engine(Small()))
    own = session.make_plan(EXPERIMENTS[REFUSED], asked(), engine(Small()))
    assert names(plan.jobs) == [name for name in names(everything.jobs) if name not in names(own.jobs)]


def test_if_no_figure_suits_the_first_reason_is_the_error() -> None:
    with pytest.raises(UsageError, match="too large: dumbbell"):
        session.checked_plan(WHOLE, asked(), engine(Tiny()))


def test_of_several_engines_only_the_one_that_refuses_is_left_out() -> None:
    both = Engines({"fake": Small(), "simulator": Large()})
    plan = session.checked_plan(WHOLE, options_typed(engine="fake,simulator"), both)
    (part,) = (part for part in plan.figures if part.figure.name == REFUSED)
    assert {spec.engine for spec in part.specs} == {"simulator"}
    assert f"{REFUSED}: not run in fake: too many flows" in plan.left_out()


def test_the_commands_say_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(FakeEngine, "check", Small.check)
    folder = ("--results", str(tmp_path))
    done = refabric("plan", "ccp", "--engine", "fake", *folder)
    assert done.exit_code == 0, done.output
    assert f"{REFUSED}: not run in fake: too many flows" in done.stdout
    for command in ("plan", "run"):
        alone = refabric(command, REFUSED, "--engine", "fake", *folder)
        assert alone.exit_code == 2
        assert "too many flows" in alone.stderr
    whole = refabric("run", "ccp", "--engine", "fake", "--seeds", "1", *folder)
    assert f"{REFUSED}: not run in fake: too many flows" in whole.stdout
    assert "Traceback" not in whole.output


def test_finished_points_are_not_checked_again(tmp_path: Path) -> None:
    figure = EXPERIMENTS["ccp-window"]
    done = refabric("run", "ccp-window", "--engine", "fake", "--results", str(tmp_path))
    assert done.exit_code == 0, done.output
    ready = session.prepare(figure, asked(), ThisMachine(engine(Tiny())), tmp_path, False, Silent())
    assert {point.name for point in ready.found.points} == set(names(ready.jobs))


def test_a_figure_without_points_for_an_engine_says_so() -> None:
    done = refabric("plan", "pfabric-overall", "--engine", "flow-level")
    assert done.exit_code == 2
    assert "pfabric-overall: it has no points for these engines; leave --engine out" in done.stderr


TREE = TopologySpec("fat_tree", {"k": 4})
GUEST_SPECS = [RunSpec(LinkSpec(10), engine="linux", seed=seed) for seed in (1, 2)]


class Guests(FakeEngine):
    """An engine that has a kernel only after `build`."""

    name = "linux"

    def __init__(self, bad: bool = False) -> None:
        super().__init__()
        self.builds, self.bad = 0, bad

    def build(self) -> None:
        self.builds += 1

    def check(self, spec: RunSpec) -> None:
        if not self.builds:
            if self.bad and spec.seed == 2:
                raise UsageError("bad input")
            raise NoKernelError("no kernel is built")

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        raise NotImplementedError


def test_a_missing_kernel_is_built_once() -> None:
    engine = Guests()
    machine = ThisMachine(engine, engine.build)
    assert machine.unfit(GUEST_SPECS) == {}
    assert machine.unfit(GUEST_SPECS) == {}
    assert engine.builds == 1


def test_bad_input_is_refused_before_the_build() -> None:
    engine = Guests(bad=True)
    with pytest.raises(UsageError):
        ThisMachine(engine, engine.build).unfit(GUEST_SPECS)
    assert engine.builds == 0


def test_a_machine_that_cannot_build_it_says_why() -> None:
    def refuse() -> None:
        raise HostUnfitError("needs packages that are missing")

    found = ThisMachine(Guests(), refuse).unfit(GUEST_SPECS)
    assert str(found["linux"]) == "needs packages that are missing"


def test_without_a_builder_the_advice_stays() -> None:
    assert isinstance(ThisMachine(Guests()).unfit(GUEST_SPECS)["linux"], NoKernelError)


class Alone(FakeEngine):
    """An engine that needs the machine to itself, which another process may have."""

    def __init__(self, taken_by: str = "") -> None:
        super().__init__(name="mininet")
        self.taken_by, self.taken = taken_by, 0

    def take_machine(self) -> None:
        self.taken += 1
        if self.taken_by:
            raise BusyError(self.taken_by)


def test_a_run_takes_the_machine_and_a_plan_does_not() -> None:
    engine = Alone()
    specs = [RunSpec(LinkSpec(10), TREE, engine="mininet", seed=seed) for seed in (1, 2)]
    assert unfit_here(engine, specs) == {}
    assert engine.taken == 0
    assert ThisMachine(engine).unfit(specs) == {}
    assert engine.taken == 1


def test_a_machine_that_is_taken_is_unfit_for_the_points_that_need_it() -> None:
    engine = Engines({"mininet": Alone("pid 7 emulates"), "fake": FakeEngine()})
    specs = [RunSpec(LinkSpec(10), TREE, engine=name) for name in ("mininet", "fake")]
    assert {name: str(error) for name, error in ThisMachine(engine).unfit(specs).items()} == {
        "mininet": "pid 7 emulates"
    }


SPECS = [dataclasses.replace(spec_of(n), engine="fake") for n in (1, 2, 8)]


def test_the_baseline_comes_first_and_every_point_once() -> None:
    other = dataclasses.replace(SPECS[0], link=LinkSpec(20.0))
    jobs = jobs_of([*SPECS, other, SPECS[0]], ThisMachine(FakeEngine(overhead=2.5)))
    assert [is_baseline(job.spec) for job in jobs] == [True, True, False, False, False, False]
    assert [job.spec for job in jobs[2:]] == [*SPECS, other]
    assert jobs[2].expected_s == SPECS[0].warmup_s + SPECS[0].seconds + 2.5


def test_time_left_is_corrected_by_what_was_observed() -> None:
    jobs = jobs_of(SPECS, ThisMachine(FakeEngine()))
    expected = sum(job.expected_s for job in jobs)
    assert remaining_s(jobs, []) == expected
    assert remaining_s(jobs, [(10.0, 20.0), (3000.0, 6000.0)]) == pytest.approx(2 * expected, rel=0.01)
    assert remaining_s([], [(10.0, 20.0)]) == 0


def test_one_short_point_that_took_long_says_little_of_long_ones() -> None:
    """At k=48 a baseline of 0.3 s took 6 s, and 40 minutes became 5 hours."""
    jobs = jobs_of([dataclasses.replace(SPECS[0], seconds=2400.0)], ThisMachine(FakeEngine()))
    expected = sum(job.expected_s for job in jobs)
    assert expected < remaining_s(jobs, [(0.3, 6.0)]) < 1.05 * expected


(FIGURE,) = ONE.figures


def resolved(**typed: str) -> SweepOptions:
    return resolve(options_typed(**{"engine": LINUX, **typed}), FIGURE.defaults)


def test_its_rate_is_not_measured_and_points_last_as_long_as_in_real_time() -> None:
    assert machines.known_rate(TREE, (LINUX,)) == RateChoice(GUEST_MBPS, machines.GUEST)
    assert machines.known_rate(TREE, (LINUX, "simulator")).rate_mbps == GUEST_MBPS
    assert machines.known_rate(TREE, ("simulator",)).rate_mbps == SIMULATED_MBPS
    ours, real = resolved(), resolved(engine=MININET)
    assert (ours.base.warmup_s, ours.base.seconds) == (real.base.warmup_s, real.base.seconds)


def test_at_ten_times_the_rate_a_tenth_of_the_time_is_enough() -> None:
    slow, fast = resolved(rate="10"), resolved(rate="100")
    assert fast.base.seconds == pytest.approx(slow.base.seconds / 10)


def test_options_of_real_hosts_are_taken_and_those_of_simulated_hosts_refused() -> None:
    base = resolved(traffic="iperf3").on(LINUX)
    assert base.traffic == "iperf3"
    assert resolved().on(LINUX).traffic == "native"
    with pytest.raises(UsageError, match="--stack"):
        resolve(options_typed(engine=LINUX, stack=("min_rto_ms=10",)), FIGURE.defaults)


def with_variants() -> list[Figure]:
    return [
        figure
        for experiment in EXPERIMENTS.values()
        for figure in experiment.figures
        if figure.has_variants and figure.emulated is not None
    ]


def test_a_figure_for_real_hosts_runs_in_it_as_it_does_in_real_time() -> None:
    figure = next(found for found in with_variants() if found.guests is None)
    assert variants(figure, LINUX) == {(LINUX,): figure.emulated}
    both = variants(figure, f"simulator,{LINUX}")
    assert list(both.values()) == [figure.defaults, figure.emulated]
    assert LINUX not in (next(iter(both)) or ())


def variants(figure: Figure, engines: str) -> dict[tuple[str, ...] | None, Settings]:
    return {chosen["engine"]: own for chosen, own in figure.variants(options_typed(engine=engines))}


def test_a_figure_may_have_settings_of_its_own_for_virtual_time() -> None:
    figure = next(found for found in with_variants() if found.guests is not None)
    found = variants(figure, f"simulator,{MININET},{LINUX}")
    assert found == {("simulator",): figure.defaults, (MININET,): figure.emulated, (LINUX,): figure.guests}
    assert variants(figure, MININET) == {(MININET,): figure.emulated}


@pytest.mark.parametrize("name", ["hedera", "subflow-idle"])
def test_guests_get_what_real_hosts_get_and_not_what_simulated_hosts_do(name: str) -> None:
    (figure,) = (found for found in EXPERIMENTS[name].figures if found.name == name)

    def settings(engine: str) -> list[tuple[TransportSpec, SchedulerSpec]]:
        options = resolve(options_typed(engine=engine, rate="20"), figure.emulated or figure.defaults)
        return [(point.transport, point.scheduler) for point in figure.points(options, lambda _: 20.0)]

    assert settings(LINUX) == settings(MININET)


def test_guests_measure_as_long_as_their_rate_needs() -> None:
    (figure,) = EXPERIMENTS["sigcomm11-congestion-controls"].figures
    defaults = figure.emulated
    assert defaults is not None

    def durations(engine: str, **typed: str) -> tuple[float, float]:
        options = resolve(options_typed(engine=engine, **typed), defaults)
        point = long_enough(figure.points(options, lambda _: GUEST_MBPS)[0], options.growing)
        return point.warmup_s, point.seconds

    assert durations(MININET) == (defaults["warmup_s"], defaults["seconds"])
    assert durations(LINUX) == (SETTLING_MBIT / GUEST_MBPS, WINDOW_MBIT / GUEST_MBPS)
    assert durations(LINUX, seconds="5") == (SETTLING_MBIT / GUEST_MBPS, 5.0)
    assert durations(LINUX, profile="smoke") <= durations(LINUX)
