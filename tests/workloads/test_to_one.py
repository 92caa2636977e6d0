"""Incast and Poisson arrivals at one receiver."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topos
from common.errors import UsageError
from workloads.flow import Flow, Traffic
from workloads.matrices import build, parse, words

STAR = topos.build("star", {"n": 51})
TRAFFIC = Traffic(seconds=20.0, host_mbps=192.0)


def made(text: str, seed: int = 1, traffic: Traffic = TRAFFIC) -> tuple[Flow, ...]:
    name, params = parse(text)
    return build(name, STAR, params, seed, traffic)


@given(st.integers(0, 2**32 - 1), st.integers(1, 10_000))
def test_all_hosts_send_the_same_to_the_last(seed: int, packets: int) -> None:
    flows = made(f"incast:{packets}", seed)
    assert len({flow.src for flow in flows}) == len(flows) == 50
    assert {(flow.dst, flow.size_bytes) for flow in flows} == {("s1h50", packets * 1448)}


@pytest.mark.parametrize(("mbps", "within_s"), [(10_000, 10e-6), (40_000, 2.5e-6)])
def test_starts_are_spread_as_in_the_paper(mbps: float, within_s: float) -> None:
    starts = [flow.start_s for flow in made("incast:10", traffic=Traffic(1.0, mbps))]
    assert 0.8 * within_s < max(starts) < within_s
    assert min(starts) < 0.2 * within_s


def test_arrivals_offer_the_load_to_the_receiver() -> None:
    flows = made("to_one:50:sizes=fixed-20000")
    offered_mbps = sum(flow.size_bytes for flow in flows) * 8 / 20.0 / 1e6
    assert offered_mbps == pytest.approx(96, rel=0.03)
    assert {flow.dst for flow in flows} == {"s1h50"}
    assert len({flow.src for flow in flows}) == 50
    assert [flow.start_s for flow in flows] == sorted(flow.start_s for flow in flows)


def test_sizes_are_those_of_the_paper() -> None:
    flows = made("to_one:50:sizes=caida", traffic=Traffic(100.0, 192.0))
    sizes = sorted(flow.size_bytes for flow in flows)
    assert statistics.fmean(size <= 10_000 for size in sizes) == pytest.approx(0.976, abs=0.003)
    assert statistics.median(sizes) == pytest.approx(10_000 * 0.5 / 0.976, rel=0.05)


@pytest.mark.parametrize(
    ("text", "says"),
    [("incast:0", "packets must be from 1"), ("to_one:100", "load must be from 1 to 99"),
     ("to_one:50:sizes=fixed-1", "would start about")],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        made(text)


def test_words() -> None:
    assert words("incast", {"packets": 10}) == "incast of 10 packets"
