"""The chart of completion times."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from analysis.completion import completions, times_ms
from analysis.quantities import FCT_MS_MEAN
from model.result import NO_VALUE, FlowRow, Status
from model.spec import WorkloadSpec
from plots.charts import completion_times
from plots.data import Inputs, Panel
from plots.registry import CHARTS
from tests.support.chart_points import Point, changed, flow_row, level, point, port_row
from tests.support.svg_text import words_of


def sized(number: int, size: int, slowdown: float) -> FlowRow:
    ideal_s = size / 1e8
    return dataclasses.replace(
        flow_row(number), size_bytes=size, start_s=0.1, completed_s=slowdown * ideal_s, ideal_s=ideal_s
    )


def fct_under(cc: str, ecn_pkts: int, slowdown: float, seed: int = 1, status: Status = Status.OK) -> Point:
    """Return a point with 150 flows of 10 kB, 50 of 2 MB, and one that did not complete."""
    rows = [sized(n, 10_000 if n < 150 else 2_000_000, slowdown + n / 1000) for n in range(200)]
    rows.append(dataclasses.replace(sized(200, 5000, 1.0), completed_s=NO_VALUE))
    return changed(point(1, seed, status), workload="poisson", cc=cc, ecn_pkts=ecn_pkts, flows=tuple(rows))


ALL = [fct_under("reno", 0, 10.0), fct_under("dctcp", 20, 2.0)]


def test_flows_of_all_good_seeds_count_together() -> None:
    good = [fct_under("reno", 0, 10.0, seed) for seed in (1, 2)]
    suspect = fct_under("reno", 0, 50.0, 3, Status.SUSPECT)
    of = completion_times.curve([*good, suspect])
    assert of is not None
    assert (len(of.points), len(of.sized.completed), of.sized.unfinished) == (2, 400, 2)


def test_sizes_are_binned_and_few_flows_have_no_99th_percentile() -> None:
    short, long = completion_times.bins(completions(ALL[1].flows))
    assert (len(short), len(long)) == (150, 50)
    assert completion_times.size_bytes(short) == pytest.approx(10_000)
    assert completion_times.slowdown_mean(short) == pytest.approx(2 + 0.0745)
    assert completion_times.slowdown_p99(short) == pytest.approx(2.148)
    assert completion_times.slowdown_p99(long) is None


LEVEL = level(
    "fat_tree", "short_and_long", FCT_MS_MEAN, 1, "about", 79, 8, "SIGCOMM'11", "text", algorithm="tcp"
)


def short_under(cc: str, subflows: int, ms: float, **fields: object) -> Point:
    """Return a point with a long flow, ten short ones around `ms`, one unfinished; links are half used."""
    short = [
        dataclasses.replace(
            flow_row(n), size_bytes=70_000, start_s=0.1, completed_s=(ms + n - 4.5) / 1000, subflows_joined=2
        )
        for n in range(10)
    ]
    late = dataclasses.replace(short[0], flow=10, completed_s=NO_VALUE)
    made = changed(
        point(subflows), workload="short_and_long", cc=cc, flows=(flow_row(11), *short, late),
        ports=(port_row(0, "a", "b", "edge-agg"), port_row(1, "h", "a", "host-edge", 1.0)),
    )  # fmt: skip
    return changed(made, **fields)


def test_transports_stand_in_their_order_with_what_was_published(tmp_path: Path) -> None:
    points = [
        short_under("lia", 8, 100),
        short_under("reno", 1, 60, routing="scatter"),
        short_under("reno", 1, 74),
    ]
    ours, at_k8 = (
        words_of(CHARTS["short_and_long"].draw(Inputs(of, tmp_path, levels=[LEVEL]))[0])
        for of in (points, [changed(point, k=8) for point in points])
    )
    assert "60 ms (PacketScatter) to 100 ms (LIA)" in ours and "10 of 11, 10 of 11, 10 of 11" in ours
    assert "published" not in ours and "published, SIGCOMM'11" in at_k8


def test_a_row_counts_links_between_switches_and_flows_of_all_good_seeds() -> None:
    of = Panel(point(1).spec, (1,), (short_under("reno", 1, 74), short_under("reno", 1, 80, seed=2)))
    (row,) = completion_times.rows(of)
    assert (len(row.sized.completed), row.used_pct, row.long_mbps, row.opened) == (20, 50.0, 2.0, 2.0)


def at_load(load: int, routing: str, s: float, subflows: int = 1, seed: int = 1) -> Point:
    """Return a point with 120 flows that take from `s` seconds on, one of which has not ended."""
    rows = [dataclasses.replace(sized(n, 10_000, 1.0), completed_s=s + n / 1000) for n in range(119)]
    rows.append(dataclasses.replace(sized(119, 10_000, 1.0), completed_s=NO_VALUE))
    return changed(
        point(subflows, seed),
        workload=WorkloadSpec("poisson", {"load": load}),
        routing=routing,
        flows=tuple(rows),
    )


def test_times_by_load_have_a_curve_for_each_policy_and_count_flows_that_have_not_ended(
    tmp_path: Path,
) -> None:
    points = [
        at_load(load, routing, s * load / 20, subflows)
        for load in (20, 60)
        for routing, subflows, s in (("ecmp", 1, 2.0), ("ecmp", 8, 1.5), ("conga:500:160", 1, 1.0))
    ]
    (drawn, *_) = CHARTS["fct_by_load"].draw(Inputs(points, tmp_path))
    shown = words_of(drawn)
    assert "at 60 % load: ECMP 6.3 s, MPTCP 8 4.9 s, CONGA 3.4 s" in shown
    assert "At most 1 % had not ended" in shown


def test_a_flow_that_has_not_ended_counts_with_its_time_so_far() -> None:
    flows = at_load(20, "ecmp", 2.0).flows
    times, unfinished = times_ms(flows, 6.0)
    assert (len(times), unfinished) == (120, 1)
    assert max(times) == pytest.approx(5900)
    assert times_ms(flows, 0.1) == ([], 0), "arrivals of the end do not count"
