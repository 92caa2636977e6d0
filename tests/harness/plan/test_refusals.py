"""Figures that an engine refuses: left out with a reason, an error if alone; plan and run do the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from common.errors import UsageError
from engines.dispatch import Dispatch
from engines.engine import Silent
from engines.fake import FakeEngine
from experiments.command import main
from experiments.registry import EXPERIMENTS
from harness.options.options import UserOptions
from harness.plan import session
from harness.plan.jobs import Job
from harness.plan.machines import ThisMachine
from model.spec import RunSpec

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


def engine(of: FakeEngine) -> Dispatch:
    return Dispatch({"fake": of})


def asked(**typed: str) -> UserOptions:
    return UserOptions.of(engine="fake", **typed)


def names(jobs: list[Job]) -> list[str]:
    return [job.name for job in jobs]


def test_a_figure_that_does_not_suit_is_left_out_with_the_reason() -> None:
    plan = session.checked_plan(WHOLE, asked(), engine(Small()))
    assert f"{REFUSED}: not run in fake: too many flows" in plan.left_out()
    assert {part.figure.name for part in plan.figures} == {f.name for f in WHOLE.figures} - {REFUSED}
    everything = session.make_plan(WHOLE, asked(), engine(Small()))
    own = session.make_plan(EXPERIMENTS[REFUSED], asked(), engine(Small()))
    assert names(plan.jobs) == [name for name in names(everything.jobs) if name not in names(own.jobs)]


def test_run_leaves_out_what_plan_leaves_out(tmp_path: Path) -> None:
    small = engine(Small())
    plan = session.checked_plan(WHOLE, asked(), small)
    ready = session.prepare(WHOLE, asked(), ThisMachine(small), tmp_path, False, Silent())
    assert names(ready.jobs) == names(plan.jobs)
    assert ready.plan.left_out() == plan.left_out()


def test_alone_it_is_an_error_in_plan_and_in_run(tmp_path: Path) -> None:
    small, figure = engine(Small()), EXPERIMENTS[REFUSED]
    with pytest.raises(UsageError, match="too many flows"):
        session.checked_plan(figure, asked(), small)
    with pytest.raises(UsageError, match="too many flows"):
        session.prepare(figure, asked(), ThisMachine(small), tmp_path, False, Silent())


def test_if_no_figure_suits_the_first_reason_is_the_error() -> None:
    with pytest.raises(UsageError, match="too large: dumbbell"):
        session.checked_plan(WHOLE, asked(), engine(Tiny()))


def test_of_several_engines_only_the_one_that_refuses_is_left_out() -> None:
    both = Dispatch({"fake": Small(), "simulator": Large()})
    plan = session.checked_plan(WHOLE, UserOptions.of(engine="fake,simulator"), both)
    (part,) = (part for part in plan.figures if part.figure.name == REFUSED)
    assert {spec.engine for spec in part.specs} == {"simulator"}
    assert f"{REFUSED}: not run in fake: too many flows" in plan.left_out()


def test_the_commands_say_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(FakeEngine, "check", Small.check)
    folder = ("--results", str(tmp_path))
    done = CliRunner().invoke(main, ["plan", "ccp", "--engine", "fake", *folder])
    assert done.exit_code == 0, done.output
    assert f"{REFUSED}: not run in fake: too many flows" in done.stdout
    for command in ("plan", "run"):
        alone = CliRunner().invoke(main, [command, REFUSED, "--engine", "fake", *folder])
        assert alone.exit_code == 2
        assert "too many flows" in alone.stderr
    whole = CliRunner().invoke(main, ["run", "ccp", "--engine", "fake", "--seeds", "1", *folder])
    assert f"{REFUSED}: not run in fake: too many flows" in whole.stdout
    assert "Traceback" not in whole.output


def test_finished_points_are_not_checked_again(tmp_path: Path) -> None:
    figure = EXPERIMENTS["ccp-window"]
    done = CliRunner().invoke(main, ["run", "ccp-window", "--engine", "fake", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    ready = session.prepare(figure, asked(), ThisMachine(engine(Tiny())), tmp_path, False, Silent())
    assert {point.name for point in ready.found.points} == set(names(ready.jobs))


def test_a_figure_that_overloads_the_machine_says_so_in_virtual_time() -> None:
    done = CliRunner().invoke(main, ["plan", "cs244-fig5", "--engine", "linux"])
    assert done.exit_code == 2
    assert "an overloaded machine show only in real time" in done.stderr
    assert "simulated" not in done.stderr


def test_a_figure_without_points_for_an_engine_says_so() -> None:
    done = CliRunner().invoke(main, ["plan", "pfabric-overall", "--engine", "flow-level"])
    assert done.exit_code == 2
    assert "pfabric-overall: it has no points for these engines; leave --engine out" in done.stderr
