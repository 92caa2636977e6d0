"""Goodput that links cannot carry, and flows that starve."""

from __future__ import annotations

import dataclasses
import math

import pytest

import topos
from analysis.plausibility import (
    OVER_CARRIED_PCT,
    drift_reasons,
    impossible,
    settling_reasons,
    starved,
    unsteady,
)
from model.reasons import DRIFT, IMPOSSIBLE, SETTLING, STARVED
from model.result import UDP, FlowRow

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
