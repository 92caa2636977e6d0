"""Fixtures of tests that use real hosts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.emulation.engine import MininetEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[MininetEngine]:
    """An engine for all points of one file."""
    engine = MininetEngine()
    yield engine
    engine.close()
