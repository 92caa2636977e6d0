"""How a noisy machine shows in results: idleness, plausibility, effects on flows."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import topos
from analysis.idleness import COLUMNS, idleness
from analysis.noise_effects import (
    TOLERANCES,
    Change,
    ShareBin,
    binned,
    changes,
    delay_share,
    largest_share,
    metrics,
)
from analysis.plausibility import (
    OVER_CARRIED_PCT,
    drift_reasons,
    impossible,
    settling_reasons,
    starved,
    unsteady,
)
from model.noise import stalls_of
from model.reasons import (
    COMPLETION,
    DRIFT,
    GOODPUT,
    IMPOSSIBLE,
    JAIN,
    METRICS,
    RTT,
    SETTLING,
    SLOWEST,
    STARVED,
)
from model.result import UDP, FlowRow, Table
from model.spec import LinkSpec, RunSpec

SOCKETS = ("t_s", "flow", "subflow", "cwnd_pkts", "unacked_pkts", "notsent_bytes", "busy_ms", "bytes_acked")
FULL, OPEN = (10, 10), (10, 3)
"""Congestion window and packets under way."""


def table(*rows: tuple[float, int, int, tuple[int, int], int, float, int]) -> Table:
    """From (t_s, flow, subflow, window, notsent_bytes, busy_ms, bytes_acked)."""
    return Table.from_rows(SOCKETS, [(t, f, s, *window, *rest) for t, f, s, window, *rest in rows])


def only(sockets: Table, flow: int, subflow: int) -> dict[str, float]:
    (row,) = [
        dict(zip(COLUMNS, row, strict=True)) for row in idleness(sockets).rows() if row[:2] == (flow, subflow)
    ]
    return {name: float(value) for name, value in row.items()}


def test_a_fast_subflow_that_runs_dry_beside_a_slow_one() -> None:
    """Starved from 1 to 3 s, and idle from 2 to 3 s; the slow subflow always holds data."""
    fast = [
        (0.0, 0, 0, FULL, 5000, 100.0, 0),
        (1.0, 0, 0, OPEN, 0, 1100.0, 500_000),
        (2.0, 0, 0, OPEN, 0, 2100.0, 1_000_000),
        (3.0, 0, 0, FULL, 5000, 2100.0, 1_000_000),
        (4.0, 0, 0, FULL, 5000, 3100.0, 1_500_000),
    ]
    slow = [(float(t), 0, 1, FULL, 60_000, 1000.0 * t, 50_000 * t) for t in range(5)]
    sockets = table(*fast, *slow)
    seen = only(sockets, 0, 0)
    assert seen["seconds"] == 4
    assert seen["idle_pct"] == pytest.approx(25)
    assert seen["starved_pct"] == pytest.approx(50)
    assert seen["starved_max_s"] == 1.0
    assert seen["mbps"] == pytest.approx(3.0)
    assert seen["idle_mbps"] == pytest.approx(1.0), "three seconds carried 12 Mb, the fourth would have 4"
    held = only(sockets, 0, 1)
    assert (held["idle_pct"], held["starved_pct"], held["starved_max_s"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((OPEN, 0), (OPEN, 0)),  # the application has no more
        ((FULL, 0), (FULL, 9000)),  # its window is full: it could not have sent
        ((OPEN, 1), (OPEN, 9000)),  # about to send
    ],
)
def test_states_that_are_not_starved(
    first: tuple[tuple[int, int], int], second: tuple[tuple[int, int], int]
) -> None:
    rows = [
        (float(t), 0, n, *state, 1000.0 * t, 0) for t in range(3) for n, state in enumerate((first, second))
    ]
    assert set(idleness(table(*rows))["starved_pct"].tolist()) == {0.0}


def test_another_connections_data_starves_no_subflow() -> None:
    rows = [(float(t), flow, 0, OPEN, 9000 * flow, 1000.0 * t, 0) for t in range(3) for flow in range(2)]
    assert idleness(table(*rows))["starved_pct"].tolist() == [0.0, 0.0]


def test_the_warm_up_and_what_was_seen_once_are_left_out() -> None:
    rows = [(t, 0, 0, OPEN, 0, 0.0 if t < 0 else 1000 * t, 0) for t in (-2.0, -1.0, 0.0, 1.0)]
    once = (1.0, 0, 1, OPEN, 0, 0.0, 0)
    seen = idleness(table(*rows, once))
    assert seen["subflow"].tolist() == [0]
    assert (seen["seconds"].tolist(), seen["idle_pct"].tolist()) == ([1.0], [0.0])


def test_a_subflow_that_is_never_busy_is_idle_at_rate_0() -> None:
    seen = only(table((0.0, 0, 0, OPEN, 0, 7.0, 0), (2.0, 0, 0, OPEN, 0, 7.0, 0)), 0, 0)
    assert (seen["idle_pct"], seen["mbps"], seen["idle_mbps"]) == (100.0, 0.0, 0.0)


def test_no_samples_no_rows() -> None:
    assert len(idleness(Table.from_rows(SOCKETS, []))) == 0
    assert len(idleness(table((-1.0, 0, 0, OPEN, 0, 0.0, 0)))) == 0


def flow(number: int, mbps: float, **more: Any) -> FlowRow:
    row = FlowRow(
        number, "a", "b", "10.0.0.1", "10.0.0.2", 1, 2, "tcp", 1, 1, "reno", mbps, int(mbps * 1e6), 0, 0.0
    )
    return dataclasses.replace(row, **more)


def test_every_metric_that_a_reason_can_doubt_has_a_tolerance() -> None:
    assert set(TOLERANCES) == set(METRICS)


def test_long_flows_have_goodput_fairness_and_round_trips() -> None:
    found = metrics([flow(0, 4.0, srtt_ms_mean=10.0), flow(1, 8.0, srtt_ms_mean=30.0)], 10.0)
    assert found == pytest.approx({GOODPUT: 60.0, SLOWEST: 40.0, JAIN: 12**2 / (2 * 80), RTT: 20.0})


def test_sized_flows_have_completion_times() -> None:
    short = [flow(n, 0.1, size_bytes=70_000, start_s=1.0, completed_s=0.1 * n) for n in (1, 2, 3)]
    assert metrics([flow(0, 4.0), *short], 10.0) == pytest.approx({COMPLETION: 200.0})


def test_changes_are_points_or_percent() -> None:
    quiet = {GOODPUT: 80.0, RTT: 200.0, JAIN: 0.9}
    found = changes(quiet, {GOODPUT: 79.0, RTT: 210.0})
    assert found == pytest.approx({GOODPUT: -1.0, RTT: 5.0})


def test_the_share_is_lateness_over_the_delay_of_the_path() -> None:
    """4 ms beside a queue of 121.1 ms and six frames of 1.2 ms."""
    spec = RunSpec(LinkSpec(10.0), noise=stalls_of("all", 4))
    assert delay_share(spec) == pytest.approx(4 / (121.12 + 6 * 1.2112), rel=1e-4)
    assert delay_share(RunSpec(LinkSpec(10.0))) == 0


def change(share: float, by: float, setting: str = "a", quiet: str = "a1") -> Change:
    return Change(GOODPUT, share, by, setting, quiet)


def test_a_quiet_point_counts_once_however_many_are_compared_with_it() -> None:
    found = [change(0.3, 1, "a", "1"), change(0.4, 3, "b", "1"), change(0.3, 4, "a", "2"), change(7.0, 9)]
    low, high = binned(found, lambda values: float(len(values)))
    assert (low.low, low.high, low.n, low.half) == (0.2, 0.5, 2, 2.0)
    assert low.mean == pytest.approx((2 + 4) / 2)
    assert low.worst == 3
    assert (high.low, high.high, high.mean) == (5.0, math.inf, 9)


def test_the_limit_is_where_the_first_bin_leaves_the_tolerance() -> None:
    def at(low: float, high: float, mean: float, half: float) -> ShareBin:
        return ShareBin(low, high, low, mean, half, 6, mean)

    bins = [at(0, 0.02, -0.5, 0.4), at(0.02, 0.05, 1.0, 0.9), at(0.05, 0.1, 1.5, 0.6), at(0.1, 0.2, 0, 0)]
    assert largest_share(bins, 2.0) == 0.05
    assert largest_share(bins, 0.5) == 0.0
    assert largest_share(bins[:2], 2.0) == 0.05
    assert largest_share([at(0, 0.02, 0, math.nan)], 2.0) == 0.0


STAR = topos.build("star", {"n": 4})
RATE_MBPS = 100.0


def row(number: int, src: str, dst: str, goodput_mbps: float) -> FlowRow:
    return FlowRow(
        number, src, dst, "", "", 1, 2, "tcp", 1, 1, "reno", goodput_mbps, round(goodput_mbps * 1e6), 0, 0.0
    )  # fmt: skip


def to_one(*goodputs: float) -> list[FlowRow]:
    return [row(i, f"s1h{i}", "s1h3", goodput) for i, goodput in enumerate(goodputs)]


def test_a_flow_above_its_hosts_links_is_doubted() -> None:
    assert impossible(to_one(104.0, 1.0), STAR, RATE_MBPS) == ()
    (reason,) = impossible(to_one(106.0, 1.0), STAR, RATE_MBPS)
    assert (reason.kind, dict(reason.numbers)) == (IMPOSSIBLE, {"goodput_over_links_pct": 106.0})


def test_two_nics_carry_twice_as_much() -> None:
    topology = topos.build("dual_homed_fat_tree", {"k": 4})
    src, dst = topology.host_names[0], topology.host_names[-1]
    assert impossible([row(0, src, dst, 200.0)], topology, RATE_MBPS) == ()
    assert impossible([row(0, src, dst, 211.0)], topology, RATE_MBPS)


def test_only_flows_that_send_in_the_whole_window_are_judged() -> None:
    (flow,) = to_one(150.0)
    ended = dataclasses.replace(flow, size_bytes=10, start_s=-1.0, completed_s=2.0)
    for other in (ended, dataclasses.replace(flow, transport=UDP), dataclasses.replace(flow, start_s=1.0)):
        assert impossible([other], STAR, RATE_MBPS) == ()
    assert impossible([dataclasses.replace(ended, completed_s=math.nan)], STAR, RATE_MBPS)


def test_a_flow_with_almost_nothing_is_a_caution() -> None:
    (caution,) = starved(to_one(95.6, 0.04), STAR, RATE_MBPS)
    assert caution.kind == STARVED
    assert dict(caution.numbers) == {"starved_flows": 1.0, "least_mbps": 0.04}
    assert starved(to_one(90.0, 5.0), STAR, RATE_MBPS) == ()


def test_many_to_one_shares_are_small_without_starving() -> None:
    """Ninety-six senders have 1 Mb/s each, far below the mean of all flows."""
    star = topos.build("star", {"n": 99})
    many = [row(i, f"s1h{i}", "s1h96", 1.0) for i in range(96)]
    fast = row(96, "s1h97", "s1h98", 95.0)
    assert starved([*many, fast], star, RATE_MBPS) == ()
    assert starved([*many[:-1], row(95, "s1h95", "s1h96", 0.01), fast], star, RATE_MBPS)


def test_a_flow_that_began_in_the_window_may_have_little() -> None:
    early, late = to_one(95.0, 0.01)
    assert starved([early, dataclasses.replace(late, start_s=5.0)], STAR, RATE_MBPS) == ()
    assert starved([early, dataclasses.replace(late, start_s=-1.0)], STAR, RATE_MBPS)


@pytest.mark.parametrize(
    ("halves_pct", "doubted"),
    [
        (None, False),
        ((50.0, 53.9), False),
        ((50.0, 54.1), True),
        ((500.0, 504.0), False),
        ((500.0, 525.0), True),
    ],
)
def test_halves_are_compared_by_the_goodput_where_that_is_above_the_slowest_link(
    halves_pct: tuple[float, float] | None, doubted: bool
) -> None:
    assert [reason.kind for reason in drift_reasons(halves_pct)] == [DRIFT] * doubted


@pytest.mark.parametrize(("pct", "word"), [(108.4, "more"), (91.0, "less"), (104.9, ""), (95.1, "")])
def test_a_window_that_delivers_more_or_less_than_it_carried_is_reported(pct: float, word: str) -> None:
    text = unsteady({OVER_CARRIED_PCT: pct})
    assert word in text and bool(text) == bool(word)
    assert unsteady({}) == ""


def test_a_warm_up_of_too_few_round_trips_is_reported_with_a_sufficient_one() -> None:
    (reason,) = settling_reasons(5.0, 0.13)
    assert reason.kind == SETTLING
    assert reason.text.endswith("use --warmup 7")
    assert settling_reasons(7.0, 0.13) == () == settling_reasons(0.0, 0.0)
