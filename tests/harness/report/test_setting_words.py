"""Words for settings in titles and tables: marks and byte queues show where points differ in them."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import pytest

from harness import labels
from harness.claims.own_settings import OwnSettings
from harness.cli import table
from harness.labels import setting_title
from harness.report.tables import option_lists
from harness.results.point_results import PointResult
from model.spec import RunSpec
from tests.support.judged_points import judged, stored
from tests.support.stored_points import spec_of


def with_link(**link: Any) -> RunSpec:
    spec = spec_of(2)
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, **link))


def points(*specs: RunSpec) -> list[PointResult]:
    return judged([stored(spec, [2.0, 3.0]) for spec in specs])


def queues_row(spec: RunSpec) -> str:
    (one,) = option_lists(points(spec))
    return dict(one)["queues"]


def test_titles_of_tables_that_differ_in_marks_differ() -> None:
    plain, marked = with_link(), with_link(ecn_pkts=20)
    assert setting_title([plain]) != setting_title([marked])
    assert "ECN from 20 packets" in setting_title([marked])
    assert "ECN" not in setting_title([plain])


def test_the_terminal_says_which_table_has_marks() -> None:
    written = io.StringIO()
    table.print_results(written, points(with_link(), with_link(ecn_pkts=20)), OwnSettings([]))
    assert written.getvalue().count("ECN from 20 packets") == 1


def test_labels_of_settings_name_marks() -> None:
    assert labels.settings(with_link(ecn_pkts=20)).endswith(", ECN from 20 packets")


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
    assert queues_row(with_link(**link)) == words
