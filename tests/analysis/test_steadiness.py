from __future__ import annotations

import pytest

from analysis.steadiness import OVER_CARRIED_PCT, unsteady


@pytest.mark.parametrize(
    ("pct", "word"),
    [(108.4, "8 % more was delivered"), (91.0, "9 % less was delivered"), (104.9, ""), (95.1, "")],
)
def test_a_window_that_delivers_what_it_did_not_carry_is_told(pct: float, word: str) -> None:
    told = unsteady({OVER_CARRIED_PCT: pct})
    assert told.startswith(word)
    assert bool(told) == bool(word)


def test_nothing_is_told_where_nothing_is_known() -> None:
    assert unsteady({}) == ""
