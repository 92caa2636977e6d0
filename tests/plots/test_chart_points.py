"""Grouping of points: no suspect point in a mean, none left out silently, and no settings mixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from model.result import FlowRow, PortRow, Status
from plots.data import Panel, chosen, panels
from plots.kinds import ranks
from plots.shared.kinds import JOINED
from plots.shared.naming import file_stems, setting_names
from tests.support.chart_points import MEANS, Point, changed, flow_row, point, port_row, with_mean


def stems(of: Sequence[Panel]) -> list[str]:
    return file_stems("rank", [panel.spec for panel in of])


def test_suspect_and_failed_seeds_are_in_no_mean() -> None:
    (panel,) = panels([point(8, 1), point(8, 3), point(8, 2, Status.SUSPECT), point(8, 4, Status.FAILED)])
    cell = panel.cell(8)
    assert [len(part) for part in (cell.ok, cell.suspect, cell.lost)] == [2, 1, 1]
    assert cell.mean_pct == pytest.approx(MEANS[8] + 0.5)
    assert cell.gap == ""


def test_gaps_say_why() -> None:
    unreferenced = with_mean(point(4), None)
    (panel,) = panels([point(1), point(2, status=Status.FAILED), unreferenced], expected=(1, 2, 3, 4))
    assert panel.subflows == (1, 2, 3, 4)
    assert [panel.cell(n).gap for n in panel.subflows] == ["", "failed", "missing", "no baseline"]


def test_settings_are_never_mixed_and_files_never_share_a_name() -> None:
    points = [
        point(1),
        changed(point(1), rate_mbps=10.0),
        changed(point(1), seconds=20.0),
        point(1, k=8),
        changed(point(1), topology="dual_homed_fat_tree"),
    ]
    of = panels(points)
    assert len(of) == 5 and all(len(panel.points) == 1 for panel in of)
    names = stems(of)
    assert len(set(names)) == 5


def flows_between(pairs: Sequence[tuple[str, str]]) -> tuple[FlowRow, ...]:
    return tuple(dataclasses.replace(flow_row(), flow=n, src=a, dst=b) for n, (a, b) in enumerate(pairs))


def test_the_optimum_is_what_shared_host_links_leave_a_flow() -> None:
    def optimum(pairs: Sequence[tuple[str, str]], ports: tuple[PortRow, ...] = ()) -> float:
        of = changed(point(1), flows=flows_between(pairs), ports=ports)
        return panels([of])[0].optimum_pct

    assert panels([point(1)])[0].optimum_pct == 100, "nothing known"
    assert optimum([("a", "b"), ("b", "a")]) == 100
    assert optimum([("a", "d"), ("b", "d"), ("c", "d"), ("d", "d")]) == 25
    several = [(client, server) for server in "abcd" for client in "wxyz"]
    assert optimum(several) == 25
    two_each = tuple(port_row(n, host, f"e{n}", "host-edge") for n, host in enumerate("aabbccddwwxxyyzz"))
    assert optimum(several, two_each) == 50


def test_settings_are_called_what_sets_them_apart() -> None:
    def names(*points: Point) -> list[str]:
        return setting_names([panel.spec for panel in panels(points)])

    assert names(point(1), point(1, k=8)) == ["k=4", "k=8"]
    fast = changed(point(1), rate_mbps=1000.0, warmup_s=20.0)
    assert names(point(1), fast) == ["k=4, 5 Mb/s", "k=4, 1000 Mb/s"], "no more than is needed"


def test_a_few_of_many_are_the_ends_and_evenly_between() -> None:
    assert chosen([1, 2, 4], 3) == [1, 2, 4]
    assert chosen(range(1, 9), 3) == [1, 5, 8]
    assert chosen([], 3) == []


SAMPLES = {
    "equal sizes": [[5.0, 60.0, 90.0], [20.0, 50.0, 80.0], [1.0, 2.0, 100.0]],
    "unequal sizes": [[5.0], [10.0, 20.0], [7.0, 8.0, 9.0, 70.0, 71.0], [1.0, 99.0]],
    "equal values": [[4.0, 4.0], [4.0, 4.0]],
    "many": [np.random.default_rng(seed).exponential(50, 100 + seed).tolist() for seed in range(7)],
}


@pytest.mark.parametrize("case", SAMPLES)
def test_a_curve_has_every_value_and_lies_in_its_band(case: str) -> None:
    samples = SAMPLES[case]
    found = ranks.pooled(samples)
    assert found is not None
    assert found.values.tolist() == sorted(value for sample in samples for value in sample)
    assert found.seeds == len(samples)
    assert (found.low <= found.values).all() and (found.values <= found.high).all()
    assert (np.diff(found.low) >= 0).all() and (np.diff(found.high) >= 0).all()
    assert (found.x_pct > 0).all() and (found.x_pct < 100).all() and (np.diff(found.x_pct) > 0).all()


def test_the_band_has_the_extremes_of_every_rank_of_seeds_with_as_many_flows() -> None:
    samples = SAMPLES["equal sizes"]
    found = ranks.pooled(samples)
    assert found is not None
    ranked = np.sort(np.array(samples), axis=1)
    assert found.low.tolist() == np.repeat(ranked.min(axis=0), 3).tolist()
    assert found.high.tolist() == np.repeat(ranked.max(axis=0), 3).tolist()
    assert found.x_pct == pytest.approx([100 * (i + 0.5) / 9 for i in range(9)])


def test_seeds_without_a_value_do_not_count() -> None:
    assert ranks.pooled([]) is None
    assert ranks.pooled([[], []]) is None
    found = ranks.pooled([[], [2.0]])
    assert found is not None and found.seeds == 1


def test_values_of_an_axis_are_not_pooled_where_transports_may_differ_in_it() -> None:
    def of(cc: str, duplicates: int, ecn: int, seed: int = 1) -> Point:
        one = point(1, seed)
        spec = dataclasses.replace(
            one.spec,
            transport=dataclasses.replace(one.spec.transport, cc=cc),
            stack=dataclasses.replace(one.spec.stack, dup_threshold=duplicates),
            link=dataclasses.replace(one.spec.link, ecn_pkts=ecn),
        )
        return dataclasses.replace(one, spec=spec)

    seeds = [of("dctcp", 3, 20, seed) for seed in (1, 2)]
    swept = [*seeds, of("dctcp", 10, 20), of("dctcp", 3, 30), of("dctcp", 10, 30)]
    found = panels([of("reno", 0, 0), *swept], ignoring=JOINED)
    assert len(found) == len(set(stems(found))) == 4
    assert [sum(p.cc == "reno" for p in panel.points) for panel in found] == [1] * 4
    assert sorted(len(panel.points) for panel in found) == [2, 2, 2, 3]
    (together,) = panels([of("reno", 0, 0), *seeds], ignoring=JOINED)
    assert len(together.points) == 3
