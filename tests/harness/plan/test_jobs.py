"""The jobs of a plan: their order, and the time that they take."""

from __future__ import annotations

import dataclasses

import pytest

from engines.fake import FakeEngine
from harness.plan.jobs import jobs_of, remaining_s
from harness.plan.machines import ThisMachine
from harness.points.baseline import is_baseline
from model.spec import LinkSpec
from tests.support.stored_points import spec_of

SPECS = [dataclasses.replace(spec_of(n), engine="fake") for n in (1, 2, 8)]


def test_the_baseline_comes_first_and_every_point_once() -> None:
    other = dataclasses.replace(SPECS[0], link=LinkSpec(20.0))
    jobs = jobs_of([*SPECS, other, SPECS[0]], ThisMachine(FakeEngine(overhead=2.5)))
    assert [is_baseline(job.spec) for job in jobs] == [True, True, False, False, False, False]
    assert [job.spec for job in jobs[2:]] == [*SPECS, other]
    assert jobs[2].expected_s == SPECS[0].warmup_s + SPECS[0].seconds + 2.5


def test_time_left_is_corrected_by_what_was_observed() -> None:
    jobs = jobs_of(SPECS, ThisMachine(FakeEngine()))
    expected = sum(job.expected_s for job in jobs)
    assert remaining_s(jobs, []) == expected
    assert remaining_s(jobs, [(10.0, 20.0), (3000.0, 6000.0)]) == pytest.approx(2 * expected, rel=0.01)
    assert remaining_s([], [(10.0, 20.0)]) == 0


def test_one_short_point_that_took_long_says_little_of_long_ones() -> None:
    """At k=48 a baseline of 0.3 s took 6 s, and 40 minutes became 5 hours."""
    jobs = jobs_of([dataclasses.replace(SPECS[0], seconds=2400.0)], ThisMachine(FakeEngine()))
    expected = sum(job.expected_s for job in jobs)
    assert expected < remaining_s(jobs, [(0.3, 6.0)]) < 1.05 * expected
