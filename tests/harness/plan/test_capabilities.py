"""A first run with guests builds their kernel, once, and after everything else was checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import HostUnfitError, NoKernelError, UsageError
from engines.engine import Observer
from engines.fake import FakeEngine
from harness.plan.capabilities import LocalCapabilities
from model.result import RunResult
from model.spec import LinkSpec, RunSpec

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
    machine = LocalCapabilities(engine, engine.build)
    assert machine.unfit(SPECS) == {}
    assert machine.unfit(SPECS) == {}
    assert engine.builds == 1


def test_bad_input_is_refused_before_the_build() -> None:
    engine = Guests(bad=True)
    with pytest.raises(UsageError):
        LocalCapabilities(engine, engine.build).unfit(SPECS)
    assert engine.builds == 0


def test_a_machine_that_cannot_build_it_says_why() -> None:
    def refuse() -> None:
        raise HostUnfitError("needs packages that are missing")

    found = LocalCapabilities(Guests(), refuse).unfit(SPECS)
    assert str(found["linux"]) == "needs packages that are missing"


def test_without_a_builder_the_advice_stays() -> None:
    assert isinstance(LocalCapabilities(Guests()).unfit(SPECS)["linux"], NoKernelError)
