"""What a noisy machine may do to a run between real hosts, and how tests allow for it.

Tests with the marker `physics` judge how fast or how evenly packets went. A machine that takes CPU time
away changes that. Such a test is repeated once if it fails. If it fails again, and the machine was
disturbed, that is a warning. Wrong counts, leftovers and crashes fail on any machine: they are in tests
without the marker, or inside `exact()`. The conftest.py of a folder imports `watched` and
`pytest_pyfunc_call`.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from common.errors import StalledFlowError
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.measure.summarise import percentile_us
from engines.emulation.noise import PERIOD_US, PRIORITY
from engines.engine import Engine, Silent
from fabric import _core
from model.machine import FLOOR_STEAL_PCT, FLOOR_US
from model.reasons import DRIFT, REPAIRS, SETTLING, STALLED, UNSTEADY, Reason
from model.result import RunResult
from model.spec import RunSpec

OF_SHORT_WINDOWS = {UNSTEADY, DRIFT, SETTLING}
"""Tests measure for seconds: flows have not settled by then, and no test rests on that."""
LATE_WAKE_UPS = 99.9
"""Percentile of lateness that a short run notices: in a second on two CPUs it is two wake-ups."""
LATE_US = 1000.0


class WrongCountError(Exception):
    """An assertion that no noise of the machine excuses."""


@contextmanager
def exact() -> Iterator[None]:
    """Make assertions in the block fail the test on any machine: counts, conservation, paths."""
    try:
        yield
    except AssertionError as error:
        raise WrongCountError(str(error)) from error


class Disturbance:
    """Lateness of idle real-time threads, one per CPU, while tests run: what the hypervisor takes away."""

    def __init__(self) -> None:
        self._cpus = sorted(os.sched_getaffinity(0))
        self._probe = _core.IdleProbe(self._cpus, period_us=PERIOD_US, priority=PRIORITY)
        self._use = CpuSampler()
        self._steal_pct = 0.0
        self._began_s = time.monotonic()

    def __enter__(self) -> Disturbance:
        self._probe.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._probe.stop()

    def _numbers(self) -> tuple[float, float, float]:
        """Return the 99th percentile and that of `LATE_WAKE_UPS` in microseconds, and stolen time in percent,
        the largest between two samples."""
        counts = np.sum([self._probe.histogram(i) for i in range(len(self._cpus))], axis=0)
        late = [percentile_us(counts, share) for share in (99, LATE_WAKE_UPS)]
        self._steal_pct = max(self._steal_pct, self._use.sample().machine.steal_pct)
        return late[0], late[1], self._steal_pct

    def so_far(self) -> str:
        """Return one line about the machine since the beginning."""
        p99_us, longer_us, steal_pct = self._numbers()
        return (
            f"idle threads {p99_us / 1000:.2f} ms late at the 99th percentile, {longer_us / 1000:.2f} ms at "
            f"the {LATE_WAKE_UPS}th, {steal_pct:.1f} % of CPU time stolen, "
            f"{time.monotonic() - self._began_s:.0f} s"
        )

    def excuse(self) -> str | None:
        """Return what disturbs the machine, or None if it is quiet."""
        p99_us, longer_us, steal_pct = self._numbers()
        quiet = p99_us < FLOOR_US and longer_us < LATE_US and steal_pct < FLOOR_STEAL_PCT
        return None if quiet else self.so_far()


def doubts(result: RunResult) -> list[Reason]:
    """Return the reasons to doubt a result, except those that its short window causes."""
    return [reason for reason in result.reasons if reason.kind not in OF_SHORT_WINDOWS]


def only_noise(result: RunResult) -> bool:
    """Return whether only the machine casts doubt on it: other programs' use of the CPUs, and a kernel that
    runs no BPF program while a certain process of another program does (docs/congestion.md)."""
    return all(reason.about.machine or reason.kind == REPAIRS for reason in doubts(result))


def skip_if_repaired(*results: RunResult) -> None:
    """Skip the test, with the reason, if the kernel did not always run the BPF program: a repetition of the
    test would judge the same results."""
    repairs = [reason.text for result in results for reason in doubts(result) if reason.kind == REPAIRS]
    if repairs:
        pytest.skip(repairs[0])


def waits(result: RunResult) -> bool:
    """Return whether a flow waits during all of a short window for data on a slow subflow.

    Linux's MPTCP retransmits such data only on an idle subflow. It is rare: if it is not, the second run has
    it too.
    """
    return any(reason.kind == STALLED for reason in doubts(result))


def repeated(run: Callable[[], RunResult], calmly: bool = False) -> RunResult:
    """Run, and once more if flows stalled or waited.

    Noise is a reason too if `calmly`: fixtures need that. A test that fails runs its points again by itself.
    """
    try:
        result = run()
    except StalledFlowError as error:
        warnings.warn(f"repeated: {error}", stacklevel=2)
        result = run()
    if waits(result) or (calmly and doubts(result) and only_noise(result)):
        result = run()
    assert only_noise(result), result.reasons
    return result


def run_once(engine: Engine, wanted: RunSpec, raw: Path, calmly: bool = False) -> RunResult:
    """Run a point on which only the machine may cast doubt; once more as `repeated` does."""
    engine.check(wanted)
    return repeated(lambda: engine.run(wanted, Silent(), raw), calmly)


DISTURBANCE = pytest.StashKey[Disturbance]()
PHYSICS = "physics"


@pytest.fixture(scope="module")
def watched(request: pytest.FixtureRequest) -> Iterator[None]:
    """Measure the noise of the machine during a file of tests, including what its fixtures run."""
    module = request.node
    assert isinstance(module, pytest.Module)
    with Disturbance() as disturbance:
        module.stash[DISTURBANCE] = disturbance
        yield
    print(f"\n{module.name}: {disturbance.so_far()}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Run a test again, or turn its failure into a warning, as this module's docstring says."""
    try:
        return (yield)
    except Exception as error:
        if not is_about_physics(pyfuncitem) or not is_figure(error):
            raise
        warnings.warn(f"repeated: {first_line(error)}", stacklevel=1)
    try:
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        return pyfuncitem.obj(**arguments) or True
    except Exception as error:
        noise = disturbance_of(pyfuncitem).excuse()
        if noise is None or not is_figure(error):
            raise
        warnings.warn(f"failed on a disturbed machine ({noise}): {first_line(error)}", stacklevel=1)
    return True


def is_about_physics(item: pytest.Function) -> bool:
    return item.get_closest_marker(PHYSICS) is not None


def disturbance_of(item: pytest.Function) -> Disturbance:
    module = item.getparent(pytest.Module)
    assert module is not None
    return module.stash[DISTURBANCE]


def is_figure(error: Exception) -> bool:
    """Return whether an assertion outside `exact()` failed, here or in a process inside namespaces."""
    exact = isinstance(error, WrongCountError) or WrongCountError.__name__ in str(error)
    return not exact and (isinstance(error, AssertionError) or AssertionError.__name__ in str(error))


def first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
