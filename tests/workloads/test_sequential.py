"""Sequential transfers: every pair by each transport, one at a time, while other tenants send and pause."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import pytest

from common.errors import UsageError
from topos import build as build_topology
from topos.cloud import is_ours
from workloads.flow import Flow, Traffic
from workloads.matrices import build
from workloads.sequential import TRANSPORTS

NET = build_topology("cloud", {"n": 8, "racks": 4, "tenants": 2})
HOUR = Traffic(3600.0, 100.0)


def drawn(seed: int = 1, traffic: Traffic = HOUR, **params: int) -> tuple[Flow, ...]:
    return build("in_turn", NET, params, seed, traffic)


def transfers(flows: Sequence[Flow]) -> list[Flow]:
    return [flow for flow in flows if is_ours(flow.src)]


def test_each_pair_has_each_transport_one_after_the_other() -> None:
    ours = transfers(drawn())
    for number, flow in enumerate(ours):
        assert flow.after == (number - 1 if number else None) and flow.start_s == 0
        assert flow.subflows == TRANSPORTS[number % 3]
        assert flow.size_bytes == 25_000_000, "two seconds of 100 Mb/s"
    pairs = [(flow.src, flow.dst) for flow in ours[::3]]
    assert pairs == [(flow.src, flow.dst) for flow in ours[2::3]]
    first = pairs[: 8 * 7]
    names = {host for pair in first for host in pair}
    assert set(first) == set(itertools.permutations(names, 2)), "all pairs, before any has a second turn"
    assert pairs[56:112] == first


def test_other_tenants_keep_to_themselves_and_are_silent_now_and_then() -> None:
    flows = drawn(busy_ms=4000, idle_ms=6000)
    others = [flow for flow in flows if not is_ours(flow.src)]
    assert all(flow.plain and not is_ours(flow.dst) and flow.src != flow.dst for flow in others)
    assert len({flow.src for flow in others}) == 8
    assert statistics.fmean(flow.start_s for flow in others) == pytest.approx(6.0, rel=0.1)
    assert statistics.fmean(flow.size_bytes for flow in others) == pytest.approx(4.0 * 12.5e6, rel=0.1)
    for flow in others:
        assert flow.after is None or flows[flow.after].src == flow.src


def test_equal_seeds_draw_equal_flows() -> None:
    assert drawn(3) == drawn(3) != drawn(4)


def test_times_are_those_of_the_hosts_links() -> None:
    slow = transfers(drawn(traffic=Traffic(3600.0, 10.0)))
    assert {flow.size_bytes for flow in slow} == {2_500_000}


@pytest.mark.parametrize(
    ("params", "words"),
    [({"size_ms": 0}, "size_ms must be from 1"), ({"size_ms": 1}, "would plan about 3602880 flows")],
)
def test_impossible_parameters_are_refused(params: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build("in_turn", NET, params, 1, HOUR)


def test_other_networks_are_refused() -> None:
    with pytest.raises(UsageError, match="topology cloud"):
        build("in_turn", build_topology("star", {"n": 4}), {}, 1, HOUR)
