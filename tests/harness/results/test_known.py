"""What a stored point may name: all that the catalogue plans, and nothing that this checkout lacks."""

from __future__ import annotations

import json

import pytest

from common.errors import UsageError
from experiments.registry import EXPERIMENTS
from harness.plan import session
from harness.plan.options import Given
from harness.results import known
from model.spec import RunSpec
from tests.support.stored_points import spec_of


def test_every_planned_point_is_known_and_comes_back_from_json() -> None:
    checked = 0
    for experiment in EXPERIMENTS.values():
        asked = Given.of(profile="paper", seeds=1)
        made = session.make_plan(experiment, asked, session.engine_for(experiment, asked))
        for spec in (job.spec for job in made.jobs if job.spec.link.rate_mbps > 0):
            known.check(spec)
            assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
            checked += 1
    assert checked > len(EXPERIMENTS)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("seed", "1", "seed is not an integer"),
        ("seed", True, "seed is not an integer"),
        ("seconds", "40", "seconds is not a finite number"),
        ("colour", 1, "colour: this version has no such field"),
        ("link", {}, r"link\.rate_mbps is missing"),
        ("link", 5, "link is not an object"),
        ("topology", {"params": {"k": 4.0}}, r"topology\.params\.k is none of int, str"),
        ("workload", {"params": {"i": None}}, r"workload\.params\.i is none of int, str"),
        ("events", {"t_s": 1}, "events is not a list"),
        ("events", [[1, "a", "b"]], r"events\[0\] is not an object"),
        ("stack", {"sack": 1}, r"stack\.sack is neither true nor false"),
    ],
)
def test_a_field_of_another_type(place: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        RunSpec.from_json({**spec_of().to_json(), place: value})
