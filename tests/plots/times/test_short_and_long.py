"""The chart of short flows beside long ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from analysis.quantities import FCT_MS_MEAN
from model.result import NO_VALUE
from plots.charts import completion_times
from plots.data import Inputs, Level, Panel, Point
from tests.support.chart_points import changed, flow_row, point, port_row
from tests.support.svg_text import words_of

LEVEL = Level(
    "fat_tree", "short_and_long", FCT_MS_MEAN, 1, "about", 79, 8, "SIGCOMM'11", "text", algorithm="tcp"
)


def under(cc: str, subflows: int, ms: float, **fields: object) -> Point:
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
        under("lia", 8, 100),
        under("reno", 1, 60, routing="scatter"),
        under("reno", 1, 74),
    ]
    (path,) = completion_times.draw_short_and_long(Inputs(points, tmp_path, levels=[LEVEL]))
    text = words_of(path).replace("\n", " ")
    assert "Short flows take 60 ms (PacketScatter) to 100 ms (LIA)" in text
    assert "Short flows completed: 10 of 11, 10 of 11, 10 of 11." in text
    assert "published" not in text
    at_k8 = [changed(point, k=8) for point in points]
    assert "published, SIGCOMM'11" in words_of(
        completion_times.draw_short_and_long(Inputs(at_k8, tmp_path, levels=[LEVEL]))[0]
    )


def test_a_row_counts_links_between_switches_and_flows_of_all_good_seeds() -> None:
    of = Panel(point(1).spec, (1,), (under("reno", 1, 74), under("reno", 1, 80, seed=2)))
    (row,) = completion_times.rows(of)
    assert (len(row.sized.completed), row.used_pct, row.long_mbps, row.opened) == (20, 50.0, 2.0, 2.0)


def test_late_joins_are_rows_of_their_own(tmp_path: Path) -> None:
    points = [
        under("reno", 1, 74),
        under("lia", 8, 50),
        under("lia", 8, 60, join_after_bytes=100_000),
    ]
    (path,) = completion_times.draw_short_and_long(Inputs(points, tmp_path))
    text = words_of(path).replace("\n", " ")
    assert "Short flows take 50 ms (join at once) to 74 ms (join never)" in text
    assert "join after 100 kB" in text
    assert "subflows, short flow" in text


def test_without_short_flows_there_is_no_chart(tmp_path: Path) -> None:
    assert completion_times.draw_short_and_long(Inputs([point(1)], tmp_path)) == []
