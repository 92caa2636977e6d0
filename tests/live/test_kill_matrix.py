"""A small sample of the kill matrix; all of it: tests/soak/kill_matrix.py."""

from __future__ import annotations

import pytest

from tests.soak.kill_matrix import go_through

pytestmark = pytest.mark.emulation


CELLS = ["fabric: SIGKILL to traffic at traffic", "fabric: SIGSTOP to inner at traffic"]


def test_nothing_is_left_and_the_same_command_completes() -> None:
    found = go_through(kills=len(CELLS), seed=1, only="|".join(CELLS))
    assert found["faults"] == []
    assert found["cells"] == CELLS
    assert found["completed"] == 1
