"""The summary of a run: what was found, its basis, what the machine did, and when there is no number."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest

import topos
from experiments.registry import CATALOGUE
from harness.baseline import baseline_of, is_baseline
from harness.claims.claims import verdicts
from harness.claims.own_settings import OwnSettings
from harness.cli import progress, table
from harness.execute.sweep import SweepPosition
from harness.labels import point_label
from harness.report import sentences
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.run_json import Attempt
from harness.results.store import StoredPoint
from model.reasons import (
    KINDS,
    LATE,
    RTT,
    Fault,
    Reason,
)
from model.result import Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.judged_points import BASELINE_MBPS, judged, stored
from tests.support.reasons import of_text
from tests.support.stored_points import EXPERIMENT, flow_row, spec_of
from topos import from_file

FIGURE = CATALOGUE.find(EXPERIMENT).figures[0]
LAST = SweepPosition(3, 9, 10.0)
LATE_FRAMES = Reason(LATE, "CPU: frames were late")


def at(pct: float, spec: RunSpec, status: Status = Status.OK, **changes: Any) -> StoredPoint:
    point = stored(spec, [pct * BASELINE_MBPS / 100] * 2, status)
    return dataclasses.replace(point, **{"metrics": {}, **changes})


def summary_of(points: Sequence[StoredPoint]) -> str:
    return " ".join(
        [*sentences.results(judged(points), OwnSettings([FIGURE])), *sentences.details(judged(points))]
    )


def last(points: Sequence[StoredPoint]) -> PointResult:
    return next(each for each in judged(points) if not is_baseline(each.spec))


def runs(*statuses: Status) -> tuple[Attempt, ...]:
    return tuple(Attempt(each, () if each is Status.OK else (LATE_FRAMES,), 2.0, 9.0) for each in statuses)


def test_what_was_found_stands_beside_what_was_published() -> None:
    found = summary_of([at(58.1, spec_of(1)), at(74.0, spec_of(2)), at(88.5, spec_of(8))])
    assert "TCP reaches 58.1 % of optimal, MPTCP with 8 subflows 88.5 %." in found
    assert "Published (SIGCOMM'11, k=8): below 50 % and about 95 %." in found
    assert "one seed" in found
    assert "3 ok" in found
    real = summary_of([at(58.1, dataclasses.replace(spec_of(1), engine="mininet"))])
    assert real.startswith("TCP reaches 58.1 %"), real


def transfers(spec: RunSpec, *took_ms: float, unfinished: int = 0) -> StoredPoint:
    """Return a point of a trace whose flows took these times, with some flows that did not end."""
    row = flow_row(0, 1.0)
    done = [dataclasses.replace(row, size_bytes=9, start_s=0.0, completed_s=ms / 1000) for ms in took_ms]
    left = [dataclasses.replace(row, size_bytes=9, start_s=0.0)] * unfinished
    trace = dataclasses.replace(spec, workload=WorkloadSpec("trace", {"name": "mine", "flows": "0,a,b,9"}))
    return dataclasses.replace(stored(trace, [1.0]), flows=(*done, *left))


def test_loops_of_flows_get_completion_times_on_the_terminal() -> None:
    """The mean goodput of flows that come and go is no share of a link."""
    row = dataclasses.replace(flow_row(0, 1.0), size_bytes=9, start_s=0.0, completed_s=1.25)
    loop = dataclasses.replace(spec_of(1), workload=WorkloadSpec("permuted_loop", {"sizes": "uniform-1-9"}))
    points = [dataclasses.replace(stored(loop, [1.0]), flows=(row, row))]
    assert progress.verdict(last(points), LAST).startswith("2 of 2 flows completed, in 1250 ms on average")
    stream = StringIO()
    table.print_results(stream, judged(points), OwnSettings([FIGURE]))
    assert "mean FCT" in stream.getvalue()
    assert "Jain" not in stream.getvalue()


def test_transfers_get_completion_times_and_no_percentages() -> None:
    points = [transfers(spec_of(1), 10.0, 30.0), transfers(spec_of(8), 5.0, 7.0, unfinished=2)]
    found = summary_of(points)
    assert "Flows take 20 ms under TCP and 6 ms under MPTCP with 8 subflows on average." in found
    assert "2 flows did not end." in found
    assert "% of optimal" not in found
    line = progress.verdict(last(points), LAST)
    assert line.startswith("2 of 2 flows completed, in 20 ms on average")
    stream = StringIO()
    table.print_results(stream, judged(points), OwnSettings([FIGURE]))
    heads = stream.getvalue()
    assert "mean FCT" in heads
    assert "Jain" not in heads
    assert "published" not in heads


def test_simulated_and_real_hosts_stand_beside_each_other() -> None:
    real = dataclasses.replace(spec_of(1), engine="mininet", traffic="native")
    simulated = dataclasses.replace(spec_of(1), engine="simulator", traffic="iperf3")
    found = summary_of([at(50.0, real), at(60.0, simulated)])
    assert "real hosts: TCP reaches 50.0 %" in found
    assert "simulated: TCP reaches 60.0 %" in found


def test_more_than_the_baseline_is_explained_on_a_network_of_the_user() -> None:
    text = from_file.text_of(topos.build("dumbbell", {"n": 1, "access": 2}))
    own = dataclasses.replace(spec_of(1), topology=TopologySpec("file", {"name": "net", "network": text}))
    assert "At 1 point flows are above 100 %" in summary_of([at(140.0, own)])
    assert "above 100 %" not in summary_of([at(100.0, own)])


def test_means_are_over_seeds_and_suspect_points_are_in_none() -> None:
    points = [at(pct, spec_of(seed=seed)) for seed, pct in ((1, 50.0), (2, 60.0))]
    found = summary_of([*points, at(99.0, spec_of(seed=3), Status.SUSPECT)])
    assert "TCP reaches 55.0 % of optimal." in found
    assert "means over 2 seeds" in found
    assert "2 ok; 1 suspect" in found


def test_noise_is_reported_as_far_as_it_was_measured() -> None:
    spec = dataclasses.replace(spec_of(8), link=LinkSpec(10.0))
    assert "Machine" not in summary_of([at(88.0, spec)])
    noisy = {"late_p99_us": 2900.0, "steal_pct": 3.21, "clock_stretch_pct": 1.23}
    noisy["idle_jitter_p99_us"] = 500.0
    found = summary_of([at(88.0, spec, metrics=noisy), at(50.0, spec_of(), metrics={"late_p99_us": 1000.0})])
    for number in (
        "2.9 ms late",
        "2.4 % of a full queue's 121 ms",
        "0.5 ms late",
        "3.2 % of",
        "1.2 % of a run",
    ):
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


def test_points_that_were_run_again_are_counted() -> None:
    once, twice = at(50.0, spec_of()), runs(Status.SUSPECT, Status.OK)
    assert "more than once" not in summary_of([once])
    assert "Run more than once: 1 point, of which 1 ok" in summary_of(
        [once, at(60.0, spec_of(2), attempts=twice)]
    )
    thrice = runs(*[Status.SUSPECT] * 3)
    both = [at(60.0, spec_of(2), attempts=twice), at(60.0, spec_of(8), Status.SUSPECT, attempts=thrice)]
    assert "Run more than once: 2 points, of which 1 ok" in summary_of(both)


def test_a_caution_names_what_it_doubts_in_one_line_for_all_points() -> None:
    caution = (Reason(LATE, "queues ran 5 ms late", doubts=(RTT, "completion times")),)
    points = [at(50.0, spec_of(n), cautions=caution) for n in (1, 2)]
    line = "RTT and completion times may be off at 2 points, for instance: queues ran 5 ms late."
    assert summary_of(points).count(line) == 1
    stream = StringIO()
    table.print_results(stream, judged(points), OwnSettings([]))
    assert stream.getvalue().count(line) == 1


def test_statements_about_other_sizes_are_one_line_and_no_table() -> None:
    points = judged([at(50.0, spec_of())])
    found = verdicts(FIGURE, points)
    stream = StringIO()
    table.print_verdicts(stream, FIGURE, found)
    assert stream.getvalue() == ""
    table.print_details(stream, points, found)
    line = "5 published statements about other sizes, workloads or transports: not measured here"
    assert line in stream.getvalue()
    assert sentences.elsewhere(verdicts(FIGURE, judged([at(50.0, spec_of(k=8))])), "x") == []


@pytest.mark.parametrize(
    ("changes", "place", "line"),
    [
        ({}, LAST, "50.0 % of optimal (slowest flow 50.0), ok"),
        ({"cautions": (Reason(LATE, "late", doubts=(RTT,)),)}, LAST, "ok, but RTT may be off"),
        (
            {"status": Status.SUSPECT, "reasons": (LATE_FRAMES,), "attempts": runs(Status.SUSPECT)},
            dataclasses.replace(LAST, again=True),
            "suspect: CPU: frames were late; will run again at the end",
        ),
        (
            {"attempts": runs(Status.SUSPECT, Status.OK)},
            dataclasses.replace(LAST, attempt=2),
            "ok, attempt 2 of 2",
        ),
        (
            {"status": Status.SUSPECT, "attempts": runs(Status.SUSPECT, Status.SUSPECT)},
            dataclasses.replace(LAST, attempt=2),
            "attempt 2: suspect: CPU: frames were late; attempt 1 of 2 counts",
        ),
    ],
)
def test_the_line_of_a_point_says_what_was_found(
    changes: dict[str, Any], place: SweepPosition, line: str
) -> None:
    assert progress.verdict(last([at(50.0, spec_of(), **changes)]), place).endswith(line)


def test_two_groups_of_one_network_are_told_apart() -> None:
    simulated = dataclasses.replace(
        spec_of(8), engine="simulator", transport=TransportSpec(8, "lia"), link=LinkSpec(100.0), seconds=4.0
    )
    assert summary_of([at(90.0, simulated)]).startswith("Simulated: MPTCP with 8 subflows reaches 90.0 %")
    found = summary_of([at(88.0, spec_of(8)), at(90.0, simulated)])
    assert "k=4 one_to_one, real hosts, 5 Mb/s, 40 s: MPTCP with 8 subflows reaches 88.0 %" in found
    assert "k=4 one_to_one, simulated, 100 Mb/s, 4 s: MPTCP with 8 subflows reaches 90.0 %" in found


def baseline(status: Status) -> StoredPoint:
    reasons = (LATE_FRAMES,)
    return dataclasses.replace(at(80.0, baseline_of(spec_of(8)), status, reasons=reasons), metrics={})


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (Status.FAILED, "The baseline of k=4 at 5 Mb/s failed, so there are no percentages: CPU: frames"),
        (
            Status.SUSPECT,
            "The baseline of k=4 at 5 Mb/s is suspect, so the percentages may be wrong: CPU: fr",
        ),
    ],
)
def test_an_unusable_baseline_is_reported_with_its_reason(status: Status, says: str) -> None:
    points = point_results.judge([baseline(status), at(88.0, spec_of(8)), at(50.0, spec_of(2))])
    found = " ".join([*sentences.results(points, OwnSettings([FIGURE])), *sentences.details(points)])
    assert says in found
    stream = StringIO()
    table.print_results(stream, points, OwnSettings([]))
    assert "CPU: frames were late" in next(
        line for line in stream.getvalue().splitlines() if "baseline" in line and "frames" in line
    )
    assert [doubt.points for doubt in sentences.doubts(points[:1])] == (
        [] if status is Status.FAILED else [(f"{point_label(points[0].spec)}: CPU: frames were late",)]
    )


def test_points_that_are_suspect_have_no_cautions() -> None:
    caution = (Reason(LATE, "queues ran 5 ms late", doubts=(RTT,)),)
    points = judged([at(50.0, spec_of(), Status.SUSPECT, cautions=caution)])
    assert sentences.caution_lines(points) == []
    assert sentences.cautions(points) == []


def test_a_run_that_needs_too_much_is_not_called_load() -> None:
    heavy = Reason(LATE, "CPU: frames were late", Fault.LOAD)
    found = summary_of([at(50.0, spec_of(), Status.SUSPECT, reasons=(heavy,))])
    assert "at 1 of 1 point (this run needs more than the machine has), for instance" in found
