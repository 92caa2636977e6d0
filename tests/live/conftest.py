"""Fixtures of tests that use real hosts. What a failure means on a machine that was disturbed is in
tests/support/machine_noise.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.emulation.engine import MininetEngine
from tests.support.machine_noise import pytest_pyfunc_call, watched

__all__ = ["engine", "pytest_pyfunc_call", "watched"]


@pytest.fixture(scope="module")
def engine() -> Iterator[MininetEngine]:
    """An engine for all points of one file."""
    engine = MininetEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="module", autouse=True)
def _watched(watched: None) -> None:
    """Measure the noise of the machine during each file."""
