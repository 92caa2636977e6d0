"""Rates of sweeps between real hosts: a sweep continues at the rate of its finished points, never at the
placeholder, and without networks that the machine does not carry."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from common.errors import HostUnfitError, RunError
from engines.engine import Observer, Silent
from engines.fake import FakeEngine
from engines.registry import VIRTUAL_TIME
from experiments.registry import EXPERIMENTS
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import run
from harness.experiment import Experiment
from harness.options.options import UserOptions
from harness.options.rates import RateChoice
from harness.plan import machines, session
from harness.plan.jobs import Job
from harness.plan.machines import MEASURED, ThisMachine
from harness.plan.session import PLACEHOLDER_MBPS, Session
from harness.results import run_json
from harness.results.store import Store, index
from model.spec import TopologySpec
from tests.support.recorded_progress import Recorder
from tests.support.stored_points import put, result_of

ENGINE = FakeEngine(name="mininet")
PAPER = EXPERIMENTS["sigcomm11-throughput"]
ONE = EXPERIMENTS["cs244-one-to-one"]
SMALL = UserOptions.of(k="4", subflows="1,8")


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
    experiment: Experiment, given: UserOptions, lab: Lab, results: Path, force: bool = False
) -> Session:
    return session.prepare(experiment, given, lab, results, force, Silent())


def real(jobs: list[Job]) -> Iterator[float]:
    return (job.spec.link.rate_mbps for job in jobs if job.spec.engine == "mininet")


def test_finished_simulations_do_not_stand_for_a_rate_of_real_hosts(tmp_path: Path) -> None:
    typed = UserOptions.of(engine="both", profile="smoke")
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
    first = prepared(ONE, UserOptions.of(k="4", subflows="1"), Lab({4: 10.0}), tmp_path)
    run(first.jobs, partial(LocalExecutor, ENGINE), first.store, first.found, Recorder())
    assert {entry.rate_choice for entry in index(tmp_path / ONE.folder)} == {MEASURED}
    later = Lab({4: 50.0})
    assert set(real(prepared(ONE, SMALL, later, tmp_path).jobs)) == {10.0}
    assert later.asked == [], "nothing is measured"
    stored = index(tmp_path / ONE.folder)
    assert set(real(session.make_plan(ONE, SMALL, ENGINE, stored).jobs)) == {10.0}
    assert set(real(prepared(ONE, SMALL, later, tmp_path, force=True).jobs)) == {50.0}
    other = UserOptions.of(k="4", subflows="1,8", seconds=7.0)
    assert set(real(prepared(ONE, other, later, tmp_path).jobs)) == {50.0}, "another window, another sweep"


def test_the_newest_points_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day, mbps in enumerate((20.0, 10.0), 1):
        now = f"2026-01-0{day}T12:00:00Z"
        monkeypatch.setattr(run_json, "utc_now", lambda now=now: now)
        ready = prepared(ONE, SMALL, Lab({4: mbps}), tmp_path, force=True)
        run(ready.jobs, partial(LocalExecutor, ENGINE), ready.store, ready.found, Recorder(), force=True)
    assert set(real(prepared(ONE, SMALL, Lab({}), tmp_path).jobs)) == {10.0}


def test_a_network_that_is_not_carried_is_left_out_and_the_others_run(tmp_path: Path) -> None:
    ready = prepared(ONE, UserOptions.of(k="4,8", subflows="1,8"), Lab({4: 5.0}), tmp_path)
    assert {job.spec.topology.k for job in ready.jobs} == {4}
    assert ready.lacking == ["not run: 2 points, because this machine does not carry k=8"]
    outcome = run(ready.jobs, partial(LocalExecutor, ENGINE), ready.store, ready.found, Recorder())
    assert len(ready.plan.jobs) > len(outcome.points) == 3


def test_where_nothing_is_carried_nothing_is_run(tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match="does not carry k=4"):
        prepared(ONE, SMALL, Lab({}), tmp_path)
