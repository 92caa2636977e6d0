"""Statistics of results: means and intervals, shares, completion times, constant-rate flows."""

from __future__ import annotations

import dataclasses
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topos
from analysis import stats
from analysis.completion import (
    ALL,
    LARGE,
    MIDDLE,
    SMALL,
    completions,
    counted,
    normalised,
    percentile,
    slowdown,
)
from analysis.shares import (
    _balia,
    bottleneck_share,
    bottleneck_shares_pct,
    congested_share,
    congested_shares_pct,
)
from analysis.stats import correlation, rank_correlation
from common.errors import UsageError
from engines.core_setup import core_datagrams, core_flows, plan_of, transport_options
from engines.emulation.engine import MininetEngine
from engines.simulation.engine import SimulatorEngine
from fabric._core import Datagrams, Simulation
from model.flows import planned_flows
from model.result import NO_VALUE, UDP, FlowRow, PortRow, under_test
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.chart_points import flow_row
from tests.support.simulated_networks import result_of

goodputs = st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, max_size=50)


@given(goodputs)
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    assert 1 / len(values) - 1e-9 <= stats.jain(values) <= 1


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_jain_does_not_depend_on_the_unit(values: list[float], factor: float) -> None:
    assert stats.jain([factor * v for v in values]) == pytest.approx(stats.jain(values))


def test_jain_of_equal_shares_of_one_taker_and_of_nothing() -> None:
    assert stats.jain([3.0] * 7) == pytest.approx(1)
    assert stats.jain([5.0, 0, 0, 0]) == pytest.approx(0.25)
    assert stats.jain([0.0, 0.0]) == 1
    assert stats.jain([5e-324, 5e-324]) == pytest.approx(1), "squares must not vanish"


@pytest.mark.parametrize("values", [[], [1.0, -1.0]])
def test_jain_refuses_what_has_no_index(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"values|shares"):
        stats.jain(values)


@given(goodputs)
def test_spread_is_ordered(values: list[float]) -> None:
    s = stats.spread(values)
    assert s.minimum <= s.median <= s.maximum
    assert s.minimum * (1 - 1e-12) <= s.mean <= s.maximum * (1 + 1e-12)


def test_spread_in_percent_of_a_baseline() -> None:
    assert stats.spread([1.0, 2.0, 6.0]).scaled(100 / 4) == stats.Spread(75.0, 25.0, 50.0, 150.0)
    with pytest.raises(ValueError, match="no values"):
        stats.spread([])


@pytest.mark.parametrize(
    ("p", "freedom", "table"),
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 5, 2.571), (0.975, 30, 2.042), (0.95, 10, 1.812),
     (0.995, 7, 3.499), (0.975, 1e6, 1.95997)],
)  # fmt: skip
def test_t_quantiles_are_those_of_printed_tables(p: float, freedom: float, table: float) -> None:
    assert stats.t_quantile(p, freedom) == pytest.approx(table, abs=5e-4)


def test_t_quantile_between_whole_degrees_integrates_the_density() -> None:
    freedom, steps = 2.5, 20_000
    end = stats.t_quantile(0.9, freedom)
    peak = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    width = end / steps
    below = sum((1 + ((i + 0.5) * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps))
    assert 0.5 + peak * below * width == pytest.approx(0.9, abs=1e-7)


@given(st.floats(0.01, 0.99), st.floats(0.5, 500))
def test_t_quantiles_are_symmetric(p: float, freedom: float) -> None:
    assert stats.t_quantile(p, freedom) == pytest.approx(-stats.t_quantile(1 - p, freedom), abs=1e-9)


@pytest.mark.parametrize(("p", "freedom"), [(0, 3), (1, 3), (0.5, 0), (math.nan, 3), (0.5, math.nan)])
def test_t_quantile_refuses_undefined_arguments(p: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        stats.t_quantile(p, freedom)


def test_mean_interval_of_a_worked_example() -> None:
    # sd 2, n 4: 2.5 +- 3.182446 * 2 / 2
    interval = stats.mean_interval([0.5, 2.5 - 3**0.5, 4.5, 2.5 + 3**0.5])
    spread = math.sqrt((4 + 4 + 3 + 3) / 3)
    assert interval.value == pytest.approx(2.5)
    assert interval.half == pytest.approx(3.182446 * spread / 2, rel=1e-6)


def test_pairs_cancel_what_they_have_in_common() -> None:
    a, b = [40.0, 60.0, 50.0], [41.0, 61.2, 50.8]
    assert stats.paired_difference(a, b).value == pytest.approx(1.0)
    assert stats.paired_difference(a, b).excludes_zero
    assert not stats.welch_difference(a, b).excludes_zero, "unpaired, the permutations' spread hides it"


def test_welch_difference_of_a_worked_example() -> None:
    # Variances 1 and 12.8 over 3 and 5 values.
    a, b = [9.0, 10.0, 11.0], [8.0, 12.0, 12.0, 12.0, 18.0]
    of_a, of_b = 1 / 3, 12.8 / 5
    freedom = (of_a + of_b) ** 2 / (of_a**2 / 2 + of_b**2 / 4)
    interval = stats.welch_difference(a, b)
    assert interval.value == pytest.approx(2.4)
    assert interval.half == pytest.approx(stats.t_quantile(0.975, freedom) * math.sqrt(of_a + of_b))


def test_a_difference_needs_repetitions() -> None:
    with pytest.raises(ValueError, match="at least two values"):
        stats.welch_difference([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least two values"):
        stats.paired_difference([1.0], [2.0])
    assert stats.welch_difference([1.0, 1.0], [3.0, 3.0]) == stats.Interval(2.0, 0.0)


def test_ranks_alone_count_for_the_second() -> None:
    xs, ys = [1.0, 2.0, 3.0, 4.0], [1.0, 8.0, 27.0, 1000.0]
    assert rank_correlation(xs, ys) == pytest.approx(1)
    pearson = correlation(xs, ys)
    assert pearson is not None
    assert 0.7 < pearson < 0.9


def test_equal_values_share_a_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5."""
    assert rank_correlation([1, 5, 5, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_a_falling_line_is_minus_one_and_nothing_to_correlate_has_no_number() -> None:
    assert correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert correlation([1, 2], [1, 2]) is None
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert rank_correlation([1, 2, 3], [4, 4, 4]) is None


def flow(src: str, goodput_mbps: float) -> FlowRow:
    return FlowRow(0, src, "", "", "", 1100, 5201, "tcp", 1, 1, "reno", goodput_mbps, 1, 0, 0.1)


def port(node: str, peer: str, tx_bytes: int, layer: str = "host-edge") -> PortRow:
    return PortRow(0, node, peer, layer, 1, tx_bytes, 0, 1, 50.0)


def test_the_share_of_a_replica_is_that_of_its_first_flow() -> None:
    flows = [flow("l0h0", 3.0), flow("l1h0", 1.0), flow("l0h1", 1.0), flow("l1h1", 1.0), flow("l1h2", 2.0)]
    assert bottleneck_shares_pct(flows) == [75.0, 25.0]
    assert bottleneck_shares_pct([flow("p0e0h0", 1.0)]) == bottleneck_shares_pct([]) == []
    assert bottleneck_shares_pct([flow("l0h0", 0.0)]) == []


def test_only_a_sender_with_two_nics_has_a_worse_path() -> None:
    ports = [
        port("l0h0", "l0a", 100), port("l0a", "l0h0", 7, "edge-host"), port("l0h0", "l0b", 300),
        port("l0ah1", "l0a", 900), port("r0h0", "r0a", 5), port("r0h0", "r0b", 5),
    ]  # fmt: skip
    assert congested_shares_pct(ports) == [25.0] and congested_shares_pct([]) == []
    assert congested_shares_pct([dataclasses.replace(each, tx_bytes=0) for each in ports]) == []


@pytest.mark.parametrize("n", [1, 2, 4, 8, 32])
def test_uncoupled_subflows_are_so_many_tcps(n: int) -> None:
    assert bottleneck_share("reno", n) == pytest.approx(n / (n + 1))
    assert {bottleneck_share(cc, n) for cc in ("lia", "olia", "balia", "ewtcp")} == {0.5}


def test_shares_on_the_worse_link_with_three_tcps_against_one() -> None:
    """Uncoupled: a quarter of one link and half of the other. EWTCP: 1/7 and 1/3. LIA: 3 r + r^2 / (1 + r^2)
    = 1 + 1 / (1 + r^2) has the root r = 0.5233."""
    assert congested_share("reno", 3, 1) == pytest.approx(1 / 3)
    assert congested_share("ewtcp", 3, 1) == pytest.approx((1 / 7) / (1 / 7 + 1 / 3))
    assert congested_share("lia", 3, 1) == pytest.approx(0.5233**2 / (1 + 0.5233**2), abs=1e-3)
    assert congested_share("olia", 3, 1) == 0


@given(st.integers(1, 20), st.integers(1, 20))
def test_the_more_coupled_the_less_on_the_worse_link(second: int, more: int) -> None:
    first = second + more
    shares = [congested_share(cc, first, second) for cc in ("olia", "lia", "ewtcp", "reno")]
    assert all(0 <= share <= 0.5 for share in shares)
    assert shares == sorted(shares)
    assert 0 < congested_share("balia", first, second) < congested_share("ewtcp", first, second)


@given(st.floats(0.05, 0.99))
def test_balias_windows_balance_growth_and_cuts(r: float) -> None:
    worse, better = _balia(r)
    a = better / worse
    assert worse + better == pytest.approx(1)
    assert (1 + a) / 2 * (4 + a) / 5 == pytest.approx(min(a, 1.5) / r**2, rel=1e-6)


def sized(
    size: int, start_s: float, completed_s: float = NO_VALUE, ideal_s: float = 1.0, flow: int = 0
) -> FlowRow:
    row = dataclasses.replace(flow_row(), flow=flow, size_bytes=size, start_s=start_s)
    return dataclasses.replace(row, completed_s=completed_s, ideal_s=ideal_s)


ROWS = [
    sized(0, 0.0),
    sized(5000, -0.1, 0.05, 0.01, flow=1),
    sized(9000, 0.0, 0.04, 0.01, flow=2),
    sized(100, 1.0, 0.02, 0.01, flow=3),
    sized(100, 9.9, flow=4),
    sized(100, NO_VALUE, flow=5),
]


def test_sized_flows_of_the_window_count() -> None:
    """Endless flows, flows of the warm-up and flows that never started do not count."""
    of = completions(ROWS)
    assert [flow.flow for flow in of.completed] == [3, 2]
    assert (of.started, of.unfinished) == (3, 1)
    assert of.took_ms == [20, 40]
    assert of.slowdowns == [2, 4]
    assert slowdown(ROWS[1]) == pytest.approx(5)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(v) for v in range(200, 0, -1)]
    assert percentile(values, 99) == 198
    assert percentile(values, 100) == 200
    assert percentile([7.0], 1) == 7
    assert math.isclose(percentile(values, 50), 100)


def test_flows_of_the_warm_up_and_of_the_tail_do_not_count() -> None:
    flows = [sized(1000, start, 1.0) for start in (-0.1, 0.0, 5.9, 6.0, 9.0)]
    counts = counted(flows, 10.0)
    assert [flow.start_s for flow, is_in in zip(flows, counts, strict=True) if is_in] == [0.0, 5.9]


def test_a_flow_that_has_not_ended_counts_with_its_time_so_far() -> None:
    found = normalised([sized(1000, 1.0, 2.0), sized(1000, 1.0)], 10.0)
    assert found.values.tolist() == [2.0, 9.0] and found.unfinished == 1
    assert found.mean == pytest.approx(5.5)


def test_a_range_contains_its_upper_end_only() -> None:
    flows = [sized(size, 0.0, 2.0) for size in (100_000, 100_001, 10_000_000, 10_000_001)]
    assert [len(normalised(flows, 10.0, of).values) for of in (SMALL, MIDDLE, LARGE, ALL)] == [1, 2, 1, 4]


def test_no_percentile_of_few_flows_and_no_mean_of_none() -> None:
    few = normalised([sized(1000, 0.0, 2.0)] * 99, 10.0)
    assert few.p99 is None and few.mean == 2.0
    assert normalised([sized(1000, 0.0, 2.0)] * 100, 10.0).p99 == 2.0
    assert normalised([], 10.0).mean is None


FRAME, PAYLOAD = 1514, 1448
RATE_MBPS = 20.0


def spec(matrix: str = "constant_rate", discipline: str = "fifo", **params: int | str) -> RunSpec:
    return RunSpec(
        LinkSpec(RATE_MBPS, 10.0, discipline=discipline), TopologySpec("fat_tree", {"k": 4}),
        TransportSpec(1), WorkloadSpec(matrix, params), engine="simulator", warmup_s=1.0, seconds=4.0,
    )  # fmt: skip


def test_what_fits_arrives_at_its_rate_and_nothing_is_lost() -> None:
    of = dataclasses.replace(spec(percent=20), topology=TopologySpec("star", {"n": 6}))
    rows = result_of(of).flows
    packets = of.seconds * 0.2 * RATE_MBPS * 1e6 / 8 / FRAME
    assert len(rows) == 6
    for row in rows:
        assert (row.transport, row.subflows_asked, row.cc, row.rate_mbps) == (UDP, 0, "none", 0.2 * RATE_MBPS)
        assert row.lost_pkts == row.retransmits == 0
        assert abs(row.sent_pkts - packets) <= 1
        assert abs(row.bytes_received / PAYLOAD - packets) <= 1
        assert row.goodput_mbps == pytest.approx(0.2 * RATE_MBPS * PAYLOAD / FRAME, rel=1e-3)


def test_a_host_that_sends_twice_what_its_link_carries_loses_half() -> None:
    of = dataclasses.replace(spec(percent=200), topology=TopologySpec("star", {"n": 4}))
    for row in result_of(of).flows:
        assert row.lost_pkts / row.sent_pkts == pytest.approx(0.5, abs=0.002)
        assert row.goodput_mbps == pytest.approx(RATE_MBPS * PAYLOAD / FRAME, rel=1e-3)


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_was_sent_has_arrived_or_is_lost(seed: int) -> None:
    """Account for every packet on overloaded links, once those in flight have arrived."""
    of = dataclasses.replace(spec(percent=80), seed=seed)
    topology = topos.build("fat_tree", {"k": 4})
    flows = planned_flows(of, topology)
    ends = core_datagrams(topology, flows)
    for each in ends:
        each.packets = 500
    simulation = Simulation(
        plan_of(of, topology), transport_options(of), core_flows(of, topology, flows), ends
    )
    simulation.run_until(10**13)
    found, ports = simulation.datagrams(), simulation.ports()
    accounted = found["received_pkts"] + found["lost_pkts"] + found["refused_pkts"]
    assert accounted.tolist() == [500] * 16
    assert found["lost_pkts"].sum() == ports["drops"].sum() > 0
    assert simulation.descriptors_in_use() == 0


def test_two_at_an_overloaded_port_share_it_by_their_rates() -> None:
    """Random drop keeps the arrivals of both flows out of step with the departures."""
    link, star = LinkSpec(RATE_MBPS, 10.0, random_pkts=50), TopologySpec("star", {"n": 4})
    of = dataclasses.replace(spec(percent=10), topology=star, link=link)
    topology = topos.build("star", {"n": 4})
    rates = [round(share * RATE_MBPS * 1e6) for share in (1.0, 0.5)]
    ends = [Datagrams(rate_bps=rate, path=(nic, 3, 5, 5)) for nic, rate in enumerate(rates)]
    simulation = Simulation(plan_of(of, topology), transport_options(of), [], ends)
    simulation.run_until(20 * 10**12)
    received = simulation.datagrams()["received_pkts"].astype(np.int64)
    assert received.sum() == pytest.approx(20 * RATE_MBPS * 1e6 / 8 / FRAME, rel=0.001)
    assert received[0] / received[1] == pytest.approx(2.0, rel=0.02)


def test_beside_tcp_the_first_rows_are_tcp_and_means_are_of_these() -> None:
    rows = result_of(spec("beside_constant_rate", percent=20, senders=50)).flows
    assert [row.transport for row in rows] == ["tcp"] * 16 + [UDP] * 8
    assert list(under_test(rows)) == list(rows[:16])
    assert all(row.goodput_mbps < RATE_MBPS for row in rows)


def test_a_higher_class_loses_nothing_and_leaves_the_rest() -> None:
    """On one switch, where the higher class alone overloads no link."""
    star = TopologySpec("star", {"n": 8})
    urgent = spec("beside_constant_rate", "priority", percent=30, dscp=46)
    rows = result_of(dataclasses.replace(urgent, topology=star)).flows
    constant = [row for row in rows if row.transport == UDP]
    assert constant
    assert sum(row.lost_pkts for row in constant) == 0
    assert all(
        row.goodput_mbps == pytest.approx(0.3 * RATE_MBPS * PAYLOAD / FRAME, rel=1e-2) for row in constant
    )
    rest = RATE_MBPS * PAYLOAD / FRAME * 0.7
    tcp = [row.goodput_mbps for row in under_test(rows)]
    assert 0.85 * rest < statistics.mean(tcp) <= rest * 1.001


def test_short_flows_of_a_higher_class_hardly_notice_the_long_ones() -> None:
    def slowdown(discipline: str, dscp: int) -> float:
        of = spec("short_and_long", discipline, long=50, size=20_000, gap_ms=100, dscp=dscp)
        rows = result_of(dataclasses.replace(of, seconds=3.0)).flows
        sized = [row for row in rows if row.size_bytes and row.start_s >= 0 and row.completed_s > 0]
        return statistics.median(row.completed_s / row.ideal_s for row in sized)

    assert slowdown("priority", 46) < 1.6
    assert slowdown("fifo", 0) > 3


def test_the_emulator_has_no_senders_of_constant_rate() -> None:
    with pytest.raises(UsageError, match="real hosts cannot send at a constant rate yet"):
        MininetEngine().check(dataclasses.replace(spec(), engine="mininet", traffic="native"))


@pytest.mark.parametrize(
    ("of", "complaint"),
    [
        (spec(percent=0), "percent must be from 1 to 1000"),
        (spec(dscp=64), "dscp must be from 0 to 63"),
        (spec("beside_constant_rate", flows="constant_rate"), "has a constant rate itself"),
        (spec("beside_constant_rate", flows="moon"), "unknown workload 'moon'"),
    ],
)
def test_what_makes_no_sense_is_named(of: RunSpec, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        SimulatorEngine().check(of)
