"""Throughput against subflows: names of schemes, the title, and places for names."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from model.spec import SchedulerSpec
from plots.charts.subflows_on_demand import marks, name, trade_off_finding
from plots.data import Point, panels
from plots.shared.labels import Spot, places
from tests.support.chart_points import changed, flow_row, point

RESPONSIVE = SchedulerSpec("responsive", 2.0)
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
    scheme(1, 840, "reno", scheduler=SchedulerSpec("annealing", 10.0)),
    scheme(4, 770, "lia"),
    scheme(4, 850, "lia", scheduler=RESPONSIVE),
]


def test_transports_with_one_subflow_have_names_of_their_own() -> None:
    assert [name(one) for one in BESIDE] == [
        "TCP",
        "PacketScatter",
        "TCP DCTCP",
        "annealing every 10 ms",
        "MPTCP 4",
        "2 ms, gap 0.15",
    ]


def test_the_title_has_the_best_on_demand_and_the_best_of_the_others() -> None:
    (panel,) = panels(BESIDE, ignoring=("scheduler", "transport.cc", "routing", "link.ecn_pkts"))
    title = trade_off_finding(marks(panel), False)
    assert (
        title
        == "On demand: 850 Mb/s with 4.0 subflows per flow; best of the others: 900 Mb/s (PacketScatter)"
    )


def test_names_of_equal_marks_do_not_cover_each_other() -> None:
    boxes = places([Spot(f"a name {n}", 150.0, 100.0, 20.0, 10.0) for n in range(5)], SIZE)
    assert all(one.overlap(other) == 0.0 for one, other in combinations(boxes, 2))


@given(st.lists(st.tuples(st.floats(0, 290), st.floats(0, 220)), min_size=1, max_size=3))
@example([(256.0, 2.0), (272.0, 0.0)])
@example([(33.0, 0.0), (32.5, 0.0)])
@example([(265.0, 11.4), (286.3, 27.4), (290.0, 0.0)])
def test_few_names_stay_inside_and_off_their_marks(at: list[tuple[float, float]]) -> None:
    """Where marks crowd in a corner, a name may touch one of them."""
    spots = [Spot("MPTCP 4", x, y) for x, y in at]
    crowded = any(math.dist(one, other) < CROWDED for one, other in combinations(at, 2))
    for box in places(spots, SIZE):
        assert box.left >= 0 and box.right <= SIZE[0] and box.bottom >= 0 and box.top <= SIZE[1]
        covered = sum(box.overlap(other) for spot in spots for other in spot.boxes)
        assert covered <= (box.area / 3 if crowded else 0.0)
