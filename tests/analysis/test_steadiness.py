from __future__ import annotations

import pytest

from analysis.steadiness import OVER_CARRIED_PCT, drift_reasons, settling_reasons, unsteady
from model.reasons import DRIFT, SETTLING


@pytest.mark.parametrize(
    ("pct", "word"),
    [(108.4, "8 % more was delivered"), (91.0, "9 % less was delivered"), (104.9, ""), (95.1, "")],
)
def test_a_window_that_delivers_more_or_less_than_it_carried_is_reported(pct: float, word: str) -> None:
    text = unsteady({OVER_CARRIED_PCT: pct})
    assert text.startswith(word)
    assert bool(text) == bool(word)


def test_without_the_metric_nothing_is_reported() -> None:
    assert unsteady({}) == ""


def test_halves_that_differ_by_more_than_the_tolerance_are_reported() -> None:
    (reason,) = drift_reasons((80.0, 90.0))
    assert reason.kind == DRIFT
    assert "80.0 % of the link rate in the first half, then 90.0 %" in reason.text
    assert drift_reasons((80.0, 83.9)) == () == drift_reasons(None)


def test_a_warm_up_of_too_few_round_trips_is_reported_with_a_sufficient_one() -> None:
    (reason,) = settling_reasons(5.0, 0.13)
    assert reason.kind == SETTLING
    assert reason.text.endswith("use --warmup 7")
    assert settling_reasons(7.0, 0.13) == () == settling_reasons(0.0, 0.0)
