"""Charts by congestion control and of replicas: whatever was measured, theory beside it, what was not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.quantities import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED
from model.result import FlowRow, PortRow, Status
from model.transports import COMPARED, SCATTER, TCP
from plots.charts import bottleneck_shares
from plots.charts.congestion_controls import by_algorithm, cells_of, comparisons, retransmitted_pct
from plots.data import Inputs, Panel, panels
from plots.registry import CHARTS
from plots.shared.kinds import mean_of
from tests.support.chart_points import SIGCOMM11_LEVELS, Point, changed, flow_row, level, point, port_row
from tests.support.svg_text import words_of

MULTIPATH = [name for name in COMPARED if name not in {TCP, SCATTER}]


def of(name: str, seed: int = 1, status: Status = Status.OK, subflows: int = 8) -> Point:
    """A point of an algorithm by its name."""
    routing = "scatter" if name == SCATTER else "hashed"
    base = point(1 if name in {TCP, SCATTER} else subflows, seed, status)
    flows = tuple(
        dataclasses.replace(flow_row(i), src=f"h{i}", dst=f"g{i}", retransmits=10 * i) for i in range(4)
    )
    return changed(
        base, cc=name if name in MULTIPATH else "reno", routing=routing, flows=flows,
    )  # fmt: skip


STATUSES = (Status.OK, Status.SUSPECT, Status.FAILED)
CASES: dict[str, list[Point]] = {
    "one seed": [of(name) for name in COMPARED],
    "six seeds": [of(name, seed) for name in COMPARED for seed in range(1, 7)],
    "every status, seeds": [
        of(name, seed, STATUSES[(i + seed) % 3]) for i, name in enumerate(COMPARED) for seed in (1, 2)
    ],
    "all failed": [of(name, 1, Status.FAILED) for name in COMPARED],
    "all suspect": [of(name, 1, Status.SUSPECT) for name in COMPARED],
    "only tcp": [of(TCP)],
    "no flows": [changed(of(name), flows=()) for name in COMPARED],
}


@pytest.mark.parametrize("case", CASES)
def test_any_points_give_a_chart(case: str, tmp_path: Path) -> None:
    (path,) = CHARTS["by_congestion_control"].draw(Inputs(CASES[case], tmp_path, levels=SIGCOMM11_LEVELS))
    words = words_of(path)
    assert "FatTree k=" in words
    run = {p.algorithm for p in CASES[case]}
    assert ("not run: " in words) == (not run >= set(COMPARED))
    assert ("Suspect, not in means" in words) == any(p.status is Status.SUSPECT for p in CASES[case])


def of_comparisons(points: list[Point]) -> list[Panel]:
    return [made for _, made in comparisons(points)]


def test_one_chart_per_number_of_subflows_with_the_baselines_in_each() -> None:
    made = of_comparisons([of(TCP), of(SCATTER), of("lia"), of("lia", subflows=2), of("olia", subflows=2)])
    assert {one.subflows: list(by_algorithm(one)) for one in made} == {
        (2,): [TCP, SCATTER, "lia", "olia"],
        (8,): [TCP, SCATTER, "lia"],
    }


def test_other_routings_are_other_charts_and_each_has_packet_scatter() -> None:
    ecmp = [changed(of(name), routing="ecmp") for name in (TCP, "lia")]
    made = of_comparisons([*ecmp, of(TCP), of("lia"), of(SCATTER)])
    assert [list(by_algorithm(one)) for one in made] == [[TCP, SCATTER, "lia"]] * 2


def test_plain_tcp_beside_each_coupled_algorithm_counts_once() -> None:
    twice = [of(TCP), changed(of(TCP), cc="lia"), of("lia")]
    (made,) = of_comparisons(twice)
    assert [len(points) for points in by_algorithm(made).values()] == [1, 1]


def test_retransmitted_segments_are_counted_per_hundred_delivered() -> None:
    flow = dataclasses.replace(flow_row(), bytes_received=1448 * 200, retransmits=3)
    assert retransmitted_pct(changed(of("lia"), flows=(flow, flow))) == pytest.approx(1.5)
    assert retransmitted_pct(changed(of("lia"), flows=())) is None
    idle = dataclasses.replace(flow, bytes_received=0)
    assert retransmitted_pct(changed(of("lia"), flows=(idle,))) is None


def costing(cc: str, subflows: int, retransmits: int, seed: int = 1, cpu: float | None = None) -> Point:
    flows = tuple(
        dataclasses.replace(flow_row(n), bytes_received=144_800, retransmits=retransmits) for n in range(4)
    )
    ports = (port_row(0, "p0e0", "p0a0", "edge-agg"), port_row(1, "p0e0", "p0e0h0", "edge-host"))
    metrics = {} if cpu is None else {"cpu_s_per_gb": cpu}
    return changed(point(subflows, seed), cc=cc, flows=flows, ports=ports, metrics=metrics)


def test_good_seeds_stand_before_suspect_ones() -> None:
    doubtful = changed(costing("lia", 8, 9, seed=2), status=Status.SUSPECT)
    (panel,) = panels([costing("lia", 8, 1), doubtful])
    cells = cells_of(panel)
    assert [p.seed for p in cells["lia", 8]] == [1]


SHARES = {"reno": 0.8, "lia": 0.5}
ONE, TWO = ("dumbbell", "against_tcp"), ("two_bottlenecks", "against_tcp")
LEVELS = [
    level(*ONE, SHARE_OF_BOTTLENECK, 4, "about", 80, 2, "NSDI'11", "theory", "reno"),
    level(*ONE, SHARE_OF_BOTTLENECK, 4, "about", 50, 2, "RFC 6356", "theory", "lia"),
    level(*TWO, SHARE_ON_CONGESTED, 2, "about", 21.5, 3, "RFC 6356", "theory", "lia"),
]


def of_replicas(cc: str, status: Status = Status.OK, count: int = 6) -> Point:
    """`count` replicas around the algorithm's shares, of one link and of two."""
    flows: list[FlowRow] = []
    ports: list[PortRow] = []
    for lane in range(count):
        mine = SHARES[cc] + 0.01 * (lane - (count - 1) / 2)
        for pair, goodput in enumerate((mine, 1 - mine)):
            flows.append(dataclasses.replace(flow_row(), src=f"l{lane}h{pair}", goodput_mbps=goodput))
        for path, sent in (("a", 1 - mine), ("b", mine)):
            ends = (f"l{lane}h0", f"l{lane}{path}", "host-edge")
            ports.append(PortRow(len(ports), *ends, 1, round(1e6 * sent), 0, 1, 50.0))
    return changed(
        point(4, status=status), topology="dumbbell", k=2, workload="against_tcp", cc=cc,
        flows=() if status is Status.FAILED else tuple(flows), ports=tuple(ports),
    )  # fmt: skip


def of_two(cc: str, status: Status = Status.OK) -> Point:
    return changed(of_replicas(cc, status), topology="two_bottlenecks", k=3, subflows=2)


@pytest.mark.parametrize(
    ("chart", "made", "shares"),
    [
        ("share", of_replicas, "uncoupled (reno) 80 %, LIA 50 %"),
        ("shift", of_two, "uncoupled (reno) 20 %, LIA 50 %"),
    ],
)
def test_all_algorithms_share_a_chart_with_theory(
    chart: str, made: Callable[..., Point], shares: str, tmp_path: Path
) -> None:
    (path,) = CHARTS[chart].draw(Inputs([made("lia"), made("reno")], tmp_path, levels=LEVELS))
    words = words_of(path)
    assert shares in words and "theory" in words and "published" not in words


def test_shares_are_pooled_over_replicas_and_seeds() -> None:
    seeds = [changed(of_replicas("lia"), seed=seed) for seed in (1, 2)]
    (panel,) = panels(seeds)
    values = bottleneck_shares.shares(panel)[4]["lia"].good
    mean = mean_of(values)
    assert len(values) == 12 and mean is not None
    assert mean.value == pytest.approx(50)
    assert 0 < mean.half < 2


def test_few_repetitions_have_no_interval(tmp_path: Path) -> None:
    (path,) = CHARTS["share"].draw(Inputs([of_replicas("lia", count=5)], tmp_path))
    assert "interval" not in words_of(path)
