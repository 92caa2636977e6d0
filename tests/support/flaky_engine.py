"""An engine whose machine is noisy for a while, in whatever process it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from common.errors import RunError
from engines.engine import Observer
from model.reasons import LATE, Fault, Reason
from model.result import RunResult, Status
from model.spec import RunSpec
from tests.support.fake_engine import FakeEngine
from tests.support.reasons import of_text

NOISE = Reason(LATE, "CPU: frames were late", Fault.HYPERVISOR)
NOT_NOISE = of_text("subflows: 3 of 16 flows had fewer than 8, at worst 5")


def eight(spec: RunSpec) -> bool:
    """Return whether the noise disturbs this point."""
    return spec.transport.subflows == 8


@dataclasses.dataclass
class Flaky(FakeEngine):
    """The fake engine with noise: the first `noisy_runs` runs of the points that `falls_on` selects are
    suspect for `reason`. Run number `fails_on` fails, and run number `stops_on` is interrupted. Runs are
    counted in files below `counters`, and the number of a run is its metric `run`."""

    counters: Path = Path()
    noisy_runs: int = 1
    reason: Reason = NOISE
    falls_on: Callable[[RunSpec], bool] = eight
    fails_on: int = 0
    stops_on: int = 0

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        result = super().run(spec, observer, raw)
        number = self._count(spec)
        if not self.falls_on(spec):
            return result
        if number == self.stops_on:
            raise KeyboardInterrupt
        if number == self.fails_on:
            raise RunError("running the flaky engine: a cable was pulled; plug it in")
        result = dataclasses.replace(result, metrics={**result.metrics, "run": float(number)})
        if number > self.noisy_runs:
            return result
        return dataclasses.replace(result, status=Status.SUSPECT, reasons=(self.reason,))

    def _count(self, spec: RunSpec) -> int:
        counter = self.counters / spec.content_hash()
        number = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(number))
        return number
