"""Titles and tables show marks and byte queues, in which points may differ."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.labels import setting_title
from harness.report.tables import option_lists
from model.spec import RunSpec
from tests.support.judged_points import judged, stored
from tests.support.stored_points import spec_of


def with_link(**link: Any) -> RunSpec:
    spec = spec_of(2)
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, **link))


def test_titles_of_tables_that_differ_in_marks_differ() -> None:
    plain, marked = with_link(), with_link(ecn_pkts=20)
    assert "ECN from 20 packets" in setting_title([marked])
    assert "ECN" not in setting_title([plain])


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({}, "100-packet"),
        ({"queue_bytes": 150_000}, "150000-byte"),
        ({"queue_pkts": 0}, "unbounded"),
        ({"queue_pkts": 0, "queue_bytes": 150_000}, "150000-byte"),
    ],
)
def test_the_reports_settings_show_the_limit_that_queues_have(link: dict[str, Any], words: str) -> None:
    (one,) = option_lists(judged([stored(with_link(**link), [2.0, 3.0])]))
    assert dict(one)["queues"] == words
