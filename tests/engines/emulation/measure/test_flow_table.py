"""What flows retransmitted in the window, also those whose sockets are gone at its end."""

from __future__ import annotations

import pytest

from engines.emulation.measure.summarise import retransmits
from tests.engines.emulation.measure.test_subflow_index import readings

BEFORE = readings((0, 0, 1100, 5), (1, 0, 1101, 7), (1, 1, 1102, 2))
AFTER = readings((0, 0, 1100, 8))
"""Flow 0 still runs, flow 1 had two subflows and is gone, flow 2 began and ended in between."""


@pytest.mark.parametrize(
    ("in_all", "ended_within", "expected"),
    [
        ((None, 12, 4), (None, True, True), [3, 3, 4]),
        ((None, 9, 4), (None, False, True), [3, 0, 4]),  # flow 1 ended before the window
        ((8, 9, 4), (None, True, True), [3, 0, 4]),  # the count of flow 0 came after its end was asked for
        ((None, None, 4), (None, True, True), [3, 0, 4]),  # a kernel that does not say
        ((None, 3, 4), (None, True, True), [3, 0, 4]),  # a subflow of flow 1 had gone before
    ],
)
def test_a_completed_flow_has_its_senders_count(
    in_all: tuple[int | None, ...], ended_within: tuple[bool | None, ...], expected: list[int]
) -> None:
    assert retransmits(BEFORE, AFTER, in_all, ended_within) == expected
