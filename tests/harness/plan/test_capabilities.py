"""What a run does before its first point: it builds the kernel of guests once, after everything else was
checked, and takes the machine for emulations."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import BusyError, HostUnfitError, NoKernelError, UsageError
from engines.dispatch import Dispatch
from engines.engine import Observer
from engines.fake import FakeEngine
from harness.plan.machines import ThisMachine, unfit_here
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec

TREE = TopologySpec("fat_tree", {"k": 4})
SPECS = [RunSpec(LinkSpec(10), engine="linux", seed=seed) for seed in (1, 2)]


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
    assert machine.unfit(SPECS) == {}
    assert machine.unfit(SPECS) == {}
    assert engine.builds == 1


def test_bad_input_is_refused_before_the_build() -> None:
    engine = Guests(bad=True)
    with pytest.raises(UsageError):
        ThisMachine(engine, engine.build).unfit(SPECS)
    assert engine.builds == 0


def test_a_machine_that_cannot_build_it_says_why() -> None:
    def refuse() -> None:
        raise HostUnfitError("needs packages that are missing")

    found = ThisMachine(Guests(), refuse).unfit(SPECS)
    assert str(found["linux"]) == "needs packages that are missing"


def test_without_a_builder_the_advice_stays() -> None:
    assert isinstance(ThisMachine(Guests()).unfit(SPECS)["linux"], NoKernelError)


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
    engine = Dispatch({"mininet": Alone("pid 7 emulates"), "fake": FakeEngine()})
    specs = [RunSpec(LinkSpec(10), TREE, engine=name) for name in ("mininet", "fake")]
    assert {name: str(error) for name, error in ThisMachine(engine).unfit(specs).items()} == {
        "mininet": "pid 7 emulates"
    }
