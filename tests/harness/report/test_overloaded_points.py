"""Charts of figures that overload the machine: what they intend does not make their points suspect."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.report.figures import loaded
from harness.results.point_results import judge
from harness.results.store import Store, load
from model.result import Status
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

NO_TIME = "CPU: no idle time left in 3 of 20 seconds"


@pytest.mark.parametrize(
    ("reason", "on_purpose", "status"),
    [
        (NO_TIME, True, Status.OK),
        (NO_TIME, False, Status.SUSPECT),
        ("5 % less was delivered than subflows carried", True, Status.SUSPECT),
    ],
)
def test_a_point_counts_if_only_the_intended_is_against_it(
    tmp_path: Path, reason: str, on_purpose: bool, status: Status
) -> None:
    store = Store.open(tmp_path, EXPERIMENT)
    put(store, spec_of(), result_of([1.0], Status.SUSPECT, reason))
    put_baseline(store, spec_of(), 4.0)
    points = load(store.directory)
    names = {point.name for point in points} if on_purpose else set()
    (point,) = (loaded(judged) for judged in judge(points, names) if judged.spec == spec_of())
    assert (point.status, point.overloads) == (status, status is Status.OK)
