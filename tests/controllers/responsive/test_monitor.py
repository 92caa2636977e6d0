"""The monitor's average, its steady checks and its requests, by hand."""

from __future__ import annotations

import dataclasses

import pytest

from controllers.hashing import FiveTuple
from controllers.responsive.controller import Monitor, Request, Settings

FLOW = FiveTuple("10.0.0.2", "10.1.0.2", 6, 1000, 5001)
OTHER = dataclasses.replace(FLOW, sport=1001)
SETTINGS = Settings(monitor_s=0.001, demand_gap=0.15, rate_variation=0.05, checks=3)
MBPS = 125
"""Bytes per ms of a flow at 1 Mb/s."""


def watch(settings: Settings = SETTINGS, *flows: FiveTuple) -> Monitor:
    monitor = Monitor(settings)
    for flow in flows or (FLOW,):
        monitor.begin(flow, 0, 0.0)
        monitor.set_subflow(flow, 0, ("a", "b", "c"))
        monitor.set_demand(flow, 1000.0)
    return monitor


def ticks(monitor: Monitor, rates_mbps: list[float], *flows: FiveTuple) -> list[list[Request]]:
    octets, asked = 0, []
    for number, rate in enumerate(rates_mbps, 1):
        octets += round(rate * MBPS)
        asked.append(monitor.tick(dict.fromkeys(flows or (FLOW,), octets), number / 1000))
    return asked


def test_average_and_request_by_hand() -> None:
    """500 Mb/s throughout: the average is 400, 480, 496, 499.2, so rates differ from it by 100, 20, 4 and
    0.8. The first is not below 5 % of 400; three checks in a row are steady at the fourth tick."""
    asked = ticks(watch(), [500.0] * 4)
    assert asked[:3] == [[], [], []]
    assert asked[3] == [Request(FLOW, asked[3][0].gap_mbps, (0,))]
    assert asked[3][0].gap_mbps == pytest.approx(1000 - 499.2)


def test_unsteady_check_starts_the_count_anew() -> None:
    asked = ticks(watch(), [500.0, 500.0, 500.0, 900.0, 500.0, 500.0, 500.0, 500.0])
    assert [bool(each) for each in asked] == [False] * 7 + [True]


@pytest.mark.parametrize(("rate_mbps", "asks"), [(849.0, True), (855.0, False)])
def test_asks_beyond_the_gap_only(rate_mbps: float, asks: bool) -> None:
    assert any(ticks(watch(), [rate_mbps] * 20)) is asks


def test_count_starts_anew_after_a_request() -> None:
    asked = ticks(watch(), [500.0] * 10)
    assert [number for number, each in enumerate(asked, 1) if each] == [4, 7, 10]


def test_without_a_demand_nothing_is_asked() -> None:
    monitor = Monitor(SETTINGS)
    monitor.begin(FLOW, 0, 0.0)
    assert not any(ticks(monitor, [100.0] * 10))


def test_idle_flow_asks_for_nothing() -> None:
    """A rate of 0 is never close to its average of 0: a stalled flow has another problem than paths."""
    assert not any(ticks(watch(), [0.0] * 10))


def test_printed_loop_serves_one_flow_per_tick() -> None:
    all_at_once = ticks(watch(SETTINGS, FLOW, OTHER), [500.0] * 4, FLOW, OTHER)
    assert [request.flow for request in all_at_once[3]] == [FLOW, OTHER]
    printed = dataclasses.replace(SETTINGS, one_per_tick=True)
    one_by_one = ticks(watch(printed, FLOW, OTHER), [500.0] * 12, FLOW, OTHER)
    assert max(len(each) for each in one_by_one) == 1
    assert {request.flow for each in one_by_one for request in each} == {FLOW, OTHER}


def test_ended_flow_is_forgotten() -> None:
    monitor = watch()
    monitor.end(FLOW)
    monitor.set_demand(FLOW, 1.0)
    assert not monitor.flows and monitor.tick({FLOW: 1}, 1.0) == []
