"""Fixtures of tests that use real hosts, and what a failure means on a machine that was disturbed.

Tests with the marker `physics` judge how fast or how evenly packets went. A machine that takes CPU time
away changes that. Such a test is repeated once if it fails. If it fails again, and the machine was
disturbed, that is a warning. Wrong counts, leftovers and crashes fail on any machine: they are in tests
without the marker, or inside `exact()` (tests/support/machine_noise.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from engines.emulation.engine import MininetEngine
from tests.support.machine_noise import Disturbance, WrongCountError

DISTURBANCE = pytest.StashKey[Disturbance]()
PHYSICS = "physics"


@pytest.fixture(scope="module")
def engine() -> Iterator[MininetEngine]:
    """An engine for all points of one file."""
    engine = MininetEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="module", autouse=True)
def _watched(request: pytest.FixtureRequest) -> Iterator[None]:
    """Measure the noise of the machine during a file of tests, including what its fixtures run."""
    module = request.node
    assert isinstance(module, pytest.Module)
    with Disturbance() as disturbance:
        module.stash[DISTURBANCE] = disturbance
        yield
    print(f"\n{module.name}: {disturbance.so_far()}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Run a test again, or turn its failure into a warning, as the module's docstring says."""
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
