"""Folders of results, empty at first."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.store import Store
from tests.support.stored_points import EXPERIMENT


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return the path of a results folder that does not exist yet."""
    return tmp_path / "results"


@pytest.fixture
def store(results: Path) -> Store:
    return Store.open(results, EXPERIMENT)
