"""Sentences of a report, and words for settings."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest

from experiments.registry import CATALOGUE
from harness.baseline import baseline_of, is_baseline
from harness.claims.own_settings import OwnSettings
from harness.cli import progress, table
from harness.execute.sweep import SweepPosition
from harness.labels import point_label, setting_title
from harness.report import sentences
from harness.report.tables import option_lists
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import row_metrics
from harness.streams import console_for
from model.reasons import KINDS, LATE, RTT, Reason
from model.result import Status
from model.spec import LinkSpec, RunSpec, WorkloadSpec
from tests.support.judged_points import BASELINE_MBPS, judged, stored, with_flows
from tests.support.reasons import of_text
from tests.support.stored_points import EXPERIMENT, flow_row, spec_of

FIGURE = CATALOGUE.find(EXPERIMENT).figures[0]
LAST = SweepPosition(3, 9, 10.0)
LATE_FRAMES = Reason(LATE, "CPU: frames were late")


def at(pct: float, spec: RunSpec, status: Status = Status.OK, **changes: Any) -> PointResult:
    point = stored(spec, [pct * BASELINE_MBPS / 100] * 2, status)
    of_rows = row_metrics(spec, point.flows, point.ports)
    return dataclasses.replace(point, **{**changes, "metrics": {**of_rows, **changes.get("metrics", {})}})


def summary_of(points: Sequence[PointResult]) -> str:
    return " ".join(
        [*sentences.results(judged(points), OwnSettings([FIGURE])), *sentences.details(judged(points))]
    )


def last(points: Sequence[PointResult]) -> PointResult:
    return next(each for each in judged(points) if not is_baseline(each.spec))


def test_what_was_found_stands_beside_what_was_published() -> None:
    found = summary_of([at(58.1, spec_of(1)), at(74.0, spec_of(2)), at(88.5, spec_of(8))])
    for words in ("58.1 %", "88.5 %", "below 50 % and about 95 %", "one seed", "3 ok"):
        assert words in found


def transfers(spec: RunSpec, *took_ms: float, unfinished: int = 0) -> PointResult:
    """Return a point of a trace whose flows took these times, with some flows that did not end."""
    row = flow_row(0, 1.0)
    done = [dataclasses.replace(row, size_bytes=9, start_s=0.0, completed_s=ms / 1000) for ms in took_ms]
    left = [dataclasses.replace(row, size_bytes=9, start_s=0.0)] * unfinished
    trace = dataclasses.replace(spec, workload=WorkloadSpec("trace", {"name": "mine", "flows": "0,a,b,9"}))
    return with_flows(stored(trace, [1.0]), (*done, *left))


def test_transfers_get_completion_times_and_no_percentages() -> None:
    points = [transfers(spec_of(1), 10.0, 30.0), transfers(spec_of(8), 5.0, 7.0, unfinished=2)]
    found = summary_of(points)
    assert "Flows take 20 ms under TCP and 6 ms under MPTCP with 8 subflows on average." in found
    assert "2 flows did not end." in found
    assert "% of optimal" not in found
    assert progress.verdict(last(points), LAST).startswith("2 of 2 flows completed, in 20 ms")
    stream = StringIO()
    table.print_results(console_for(stream), judged(points), OwnSettings([FIGURE]))
    assert "mean FCT" in stream.getvalue()
    assert "Jain" not in stream.getvalue(), "a mean goodput of flows that come and go is no share of a link"


def test_transfers_beside_a_point_whose_flows_all_began_before_the_window_need_no_baseline() -> None:
    done = transfers(spec_of(8), 5.0)
    before = stored(dataclasses.replace(done.spec, transport=spec_of(1).transport, seed=2), [1.0])
    both = [
        dataclasses.replace(each, baseline_mbps=None) if each.only_transfers else each
        for each in judged([before, done])
    ]
    (found,) = sentences.results(both, OwnSettings([FIGURE]))
    assert "TCP reaches 20.0 % of optimal" in found
    assert "MPTCP" not in found


def test_means_are_over_seeds_and_suspect_points_are_in_none() -> None:
    points = [at(pct, spec_of(seed=seed)) for seed, pct in ((1, 50.0), (2, 60.0))]
    found = summary_of([*points, at(99.0, spec_of(seed=3), Status.SUSPECT)])
    assert "TCP reaches 55.0 % of optimal." in found
    assert "means over 2 seeds" in found
    assert "2 ok; 1 suspect" in found


def test_noise_is_reported_as_far_as_it_was_measured() -> None:
    spec = dataclasses.replace(spec_of(8), link=LinkSpec(10.0))
    assert "Machine" not in summary_of([at(88.0, spec)])
    noisy = {"late_p99_us": 2900.0, "steal_pct": 3.21, "clock_stretch_pct": 1.23, "idle_jitter_p99_us": 500.0}
    found = summary_of([at(88.0, spec, metrics=noisy), at(50.0, spec_of(), metrics={"late_p99_us": 1000.0})])
    for number in ("2.9 ms", "2.4 % of a full queue's 121 ms", "0.5 ms", "3.2 % of", "1.2 % of a run"):
        assert number in found
    quiet = {"late_p99_us": 90.0, "steal_pct": 0.0, "clock_stretch_pct": 0.0}
    assert "hypervisor" not in summary_of([at(88.0, spec, metrics=quiet)])


def test_a_queue_without_limit_is_no_measure_of_lateness() -> None:
    spec = dataclasses.replace(spec_of(), link=LinkSpec(10.0, queue_pkts=0))
    unbounded = at(88.0, spec, metrics={"late_p99_us": 2900.0})
    assert "was 2.9 ms late or more." in summary_of([unbounded])
    bounded = at(88.0, spec_of(8), metrics={"late_p99_us": 2000.0})
    assert "was 2 ms late or more, 0.83 % of a full queue's 242 ms." in summary_of([unbounded, bounded])


def test_there_is_no_number_where_every_point_is_suspect_or_failed() -> None:
    suspect = [
        at(50.0, spec_of(n), Status.SUSPECT, reasons=(LATE_FRAMES, of_text("subflows: few"))[: 2 // n or 1])
        for n in (1, 2)
    ]
    failed = stored(spec_of(8), [])
    found = summary_of([*suspect, failed])
    assert found.startswith(
        f"{sentences.NO_NUMBER} Frames were delivered late at 2 of 3 points, for instance: "
        f"CPU: frames were late. What helps: {KINDS[LATE].todo}"
    )
    assert "reaches" not in found
    assert sentences.NO_NUMBER not in summary_of([*suspect, failed, at(50.0, spec_of(seed=2))])
    assert f"{sentences.NO_NUMBER} The first failure: CPU: no idle time" in summary_of([failed])


def test_a_caution_names_what_it_doubts_in_one_line_for_all_points() -> None:
    caution = (Reason(LATE, "queues ran 5 ms late", doubts=(RTT, "completion times")),)
    points = [at(50.0, spec_of(n), cautions=caution) for n in (1, 2)]
    line = "RTT and completion times may be off at 2 points, for instance: queues ran 5 ms late."
    assert summary_of(points).count(line) == 1
    stream = StringIO()
    table.print_results(console_for(stream), judged(points), OwnSettings([]))
    assert stream.getvalue().count(line) == 1


def baseline(status: Status) -> PointResult:
    reasons = (LATE_FRAMES,)
    return dataclasses.replace(at(80.0, baseline_of(spec_of(8)), status, reasons=reasons), metrics={})


@pytest.mark.parametrize("status", [Status.FAILED, Status.SUSPECT])
def test_an_unusable_baseline_is_reported_with_its_reason(status: Status) -> None:
    points = point_results.judge([baseline(status), at(88.0, spec_of(8)), at(50.0, spec_of(2))])
    found = " ".join([*sentences.results(points, OwnSettings([FIGURE])), *sentences.details(points)])
    assert re.search(rf"The baseline of k=4 at 5 Mb/s (is )?{status}, .*percentages.*: CPU: frames", found)
    assert [doubt.points for doubt in sentences.doubts(points[:1])] == (
        [] if status is Status.FAILED else [(f"{point_label(points[0].spec)}: CPU: frames were late",)]
    )


def test_points_that_are_suspect_have_no_cautions() -> None:
    caution = (Reason(LATE, "queues ran 5 ms late", doubts=(RTT,)),)
    points = judged([at(50.0, spec_of(), Status.SUSPECT, cautions=caution)])
    assert sentences.caution_lines(points) == []
    assert sentences.cautions(points) == []


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


def test_many_points_are_one_table_of_means() -> None:
    """32 settings of two seeds: a row per transport, a column per stride, and the failed point left out."""
    base = spec_of(subflows=1)
    specs = [
        base.changed({"workload": WorkloadSpec("stride", {"i": i}), "transport.subflows": n, "seed": seed})
        for n in (1, 2, 4, 8)
        for i in range(1, 9)
        for seed in (1, 2)
    ]
    points = [at(10 * spec.transport.subflows + spec.seed, spec) for spec in specs]
    points[0] = stored(specs[0], [], Status.FAILED)
    stream = StringIO()
    found = judged(points)
    table.print_figures(console_for(stream), found, [(FIGURE, found), (FIGURE, found)], OwnSettings([FIGURE]))
    lines = stream.getvalue().splitlines()
    (heads,) = (line.split() for line in lines if "i 1 " in line)
    assert heads == [word for i in range(1, 9) for word in ("i", str(i))]
    rows = {
        line.split("  ")[0].strip(): line.split()[-8:]
        for line in lines
        if line.startswith((" TCP", " MPTCP"))
    }
    assert [name.split(" unc")[0] for name in rows] == ["TCP", "MPTCP 2", "MPTCP 4", "MPTCP 8"]
    for count, cells in zip((1, 2, 4, 8), rows.values(), strict=True):
        assert cells[1:] == [f"{10 * count + 1.5:.1f}"] * 7
    assert rows["TCP"][0] == "12.0", "the seed that did not fail"
