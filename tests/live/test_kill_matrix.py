"""A small sample of the kill matrix; all of it: tests/soak/kill_matrix.py."""

from __future__ import annotations

import pytest

from tests.soak.kill_matrix import go_through

pytestmark = pytest.mark.emulation


@pytest.mark.parametrize(
    "only", ["fabric: SIGSTOP to inner at traffic", "fabric: SIGKILL to traffic at traffic"]
)
def test_nothing_is_left_and_the_same_command_completes(only: str) -> None:
    found = go_through(kills=1, seed=1, only=only)
    assert found["faults"] == []
    assert found["kills"] == 1
    assert found["completed"] >= 1
