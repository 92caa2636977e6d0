"""Throughput against subflows: names of schemes, the title, and places for names."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.spec import SchedulerSpec, StackSpec
from plots.charts.subflows_on_demand import (
    against_usual,
    assumption_numbers,
    changes,
    goodput_change_pct,
    messages,
    name,
    option_numbers,
    rows,
    subflows,
    trade_off_numbers,
    with_equal_seeds,
)
from plots.data import Panel, panels
from plots.shared.places import NamedMark, places
from tests.support.chart_points import Point, changed, flow_row, point

RESPONSIVE, HEDERA = SchedulerSpec("responsive", 2.0), SchedulerSpec("annealing", 10.0)
SIZE = (290.0, 220.0)
CROWDED = 60.0
"""Marks nearer than this share the places of their names."""


def scheme(subflows: int, mbps: float, cc: str, **fields: object) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, subflows_joined=subflows)
    return changed(point(subflows), flows=(flow,), cc=cc, **fields)


BESIDE = [
    scheme(1, 450, "reno"),
    scheme(1, 900, "reno", routing="scatter"),
    scheme(1, 460, "dctcp", ecn_pkts=20),
    scheme(1, 840, "reno", scheduler=HEDERA),
    scheme(4, 770, "lia"),
    scheme(4, 850, "lia", scheduler=RESPONSIVE),
]


def test_transports_with_one_subflow_have_names_of_their_own() -> None:
    assert len({name(one) for one in BESIDE}) == len(BESIDE)


def test_the_title_has_the_best_on_demand_and_the_best_of_the_others() -> None:
    (panel,) = panels(BESIDE, ignoring=("scheduler", "transport.cc", "routing", "link.ecn_pkts"))
    found = trade_off_numbers(panel)
    assert found == {
        "unit": "%.0f Mb/s", "own": 850, "subflows": 4, "other": "PacketScatter", "of_other": 900
    }  # fmt: skip


def test_names_of_equal_marks_do_not_cover_each_other() -> None:
    boxes = places([NamedMark(f"a name {n}", 150.0, 100.0, 20.0, 10.0) for n in range(5)], SIZE)
    assert all(one.overlap(other) == 0.0 for one, other in combinations(boxes, 2))


@given(st.lists(st.tuples(st.floats(0, 290), st.floats(0, 220)), min_size=1, max_size=3))
@example([(256.0, 2.0), (272.0, 0.0)])
@example([(33.0, 0.0), (32.5, 0.0)])
@example([(265.0, 11.4), (286.3, 27.4), (290.0, 0.0)])
def test_few_names_stay_inside_and_off_their_marks(at: list[tuple[float, float]]) -> None:
    """Where marks crowd in a corner, a name may touch one of them."""
    spots = [NamedMark("MPTCP 4", x, y) for x, y in at]
    crowded = any(math.dist(one, other) < CROWDED for one, other in combinations(at, 2))
    for box in places(spots, SIZE):
        assert box.left >= 0 and box.right <= SIZE[0] and box.bottom >= 0 and box.top <= SIZE[1]
        covered = sum(box.overlap(other) for spot in spots for other in spot.boxes)
        assert covered <= (box.area / 3 if crowded else 0.0)


def led(mbps: float, subflows: int = 4, seed: int = 1, **options: Any) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, subflows_joined=subflows)
    return changed(
        point(subflows), seed=seed, flows=(flow,), scheduler=dataclasses.replace(RESPONSIVE, **options),
        metrics={"controller_messages": 400.0}, warmup_s=0.1, seconds=0.1,
    )  # fmt: skip


def option_sweep() -> list[Point]:
    return [
        *(led(800, seed=seed) for seed in (1, 2)),
        led(760, interval_ms=8.0),
        led(780, interval_ms=4.0),
        led(810, checks=1),
        led(790, one_per_tick=True),
        led(500, subflows=1),
        led(1, interval_ms=4.0, checks=9),
    ]


def test_rows_change_one_option_and_the_first_none() -> None:
    assert [row.label for row in rows(option_sweep())] == [
        "usual setting",
        "monitor interval 4 ms",
        "monitor interval 8 ms",
        "steady checks 1",
        "one flow per tick",
        "most subflows 1",
    ]
    assert len(rows(option_sweep())[0].points) == 2


def test_the_title_names_the_value_that_moves_goodput_most() -> None:
    options = Panel(option_sweep()[0].spec, (4,), tuple(option_sweep()))
    assert option_numbers(options) == {"option": "most subflows 1", "pct": pytest.approx(-37.5)}
    assumptions = Panel(options.spec, (4,), tuple(assumption_sweep()))
    found = assumption_numbers(assumptions)
    assert found == {"assumption": "min RTO 1 ms", "pct": pytest.approx(-50), "scheme": "MPTCP 4"}


def test_messages_are_of_the_whole_run() -> None:
    assert messages(led(800)) == pytest.approx(2.0)


def run(mbps: float, subflows: int = 4, seed: int = 1, joined: int = 4, **fields: object) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, subflows_joined=joined)
    return changed(point(subflows), seed=seed, flows=(flow,), **fields)


def assumption_sweep() -> list[Point]:
    return [
        *(run(800 * seed, seed=seed, scheduler=RESPONSIVE) for seed in (1, 2)),
        *(run(720 * seed, seed=seed, joined=3, scheduler=RESPONSIVE, queue_pkts=25) for seed in (1, 2)),
        run(770),
        run(385, stack=StackSpec(min_rto_ms=1.0)),
        run(840, 1, joined=1, scheduler=HEDERA),
        run(630, 1, joined=1, scheduler=SchedulerSpec("first_fit", 10.0)),
    ]


def test_changes_are_of_the_same_scheme_and_seed() -> None:
    found = changes([*assumption_sweep()[4:], *assumption_sweep()[:4]])
    assert {name: [row.label for row in of[1:]] for name, of in found.items()} == {
        "2 ms, gap 0.15": ["queue 25 packets"],
        "MPTCP 4": ["min RTO 1 ms"],
        "Hedera": ["Hedera: first fit"],
    }
    pct = against_usual(found, goodput_change_pct)
    more = against_usual(found, lambda usual, other: subflows(other) - subflows(usual))
    queue, first_fit = found["2 ms, gap 0.15"][1].points, found["Hedera"][1].points
    means = pct(queue), more(queue), pct(first_fit)
    assert [mean.value for mean in means if mean] == pytest.approx([-10, -1, -25])
    assert more([run(770, seed=9)]) is None


def test_seeds_that_one_setting_lacks_do_not_count() -> None:
    points = [run(800, seed=seed, queue_pkts=pkts) for pkts in (25, 100) for seed in (1, 2)]
    assert {point.seed for point in with_equal_seeds([*points, run(800, seed=3)])} == {1, 2}
    assert with_equal_seeds([run(800, seed=1), run(800, seed=2, queue_pkts=25)]) == []
