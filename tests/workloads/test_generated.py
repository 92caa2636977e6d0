"""Generated workloads: exponential gaps, the requested load, chains of flows, their text."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from common.draws import exponential
from common.errors import UsageError
from topos import build as build_topology
from workloads.flow import Flow, Traffic
from workloads.generated import (
    arrivals,
    closed_loop,
    constant_rate,
    pairs,
    permuted_loop,
    poisson,
    short_and_long,
    short_and_long_alike,
)
from workloads.matrices import build, label, parse

HOSTS = [f"h{n}" for n in range(16)]
TRAFFIC = Traffic(seconds=20.0, host_mbps=100.0)


def test_exponential_values_have_the_exponential_distribution() -> None:
    """Kolmogorov-Smirnov at a level of 0.1 %, and the first two moments."""
    rng, count = random.Random(3), 40_000
    drawn = sorted(exponential(rng) for _ in range(count))
    worst = max(abs((i + 0.5) / count - (1 - math.exp(-value))) for i, value in enumerate(drawn))
    assert worst < 1.95 / math.sqrt(count)
    assert statistics.fmean(drawn) == pytest.approx(1, abs=4 / math.sqrt(count))
    assert statistics.pvariance(drawn) == pytest.approx(1, abs=4 * math.sqrt(8 / count))


def test_values_are_the_same_on_every_machine() -> None:
    rng = random.Random(1)
    assert [exponential(rng).hex() for _ in range(3)] == [
        "0x1.132d8f91b7584p-3",
        "0x1.7311d8af1ca20p+0",
        "0x1.93d38c0d6fe64p-1",
    ]


def test_arrivals_in_disjoint_spans_are_poisson_and_independent() -> None:
    times = list(arrivals(random.Random(8), per_s=50.0, until_s=400.0))
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 400
    in_second = Counter(map(int, times))
    counts = [in_second[second] for second in range(400)]
    assert statistics.fmean(counts) == pytest.approx(50, abs=4 * math.sqrt(50 / 400))
    assert statistics.variance(counts) == pytest.approx(50, rel=0.3)
    mean = statistics.fmean(counts)
    neighbours = statistics.fmean((a - mean) * (b - mean) for a, b in pairwise(counts))
    assert abs(neighbours) < 4 * 50 / math.sqrt(400)


@pytest.mark.parametrize(
    ("load", "sizes"), [(20, "fixed-20000"), (60, "uniform-1000-9000"), (90, "fixed-500000")]
)
def test_poisson_offers_the_load_that_was_asked_for(load: int, sizes: str) -> None:
    flows = poisson(HOSTS, 4, Traffic(10.0, 100.0), load=load, sizes=sizes)
    offered = sum(flow.size_bytes for flow in flows) / (len(HOSTS) * 100e6 / 8 * 10)
    assert 100 * offered == pytest.approx(load, rel=5 / math.sqrt(len(flows)))


@pytest.mark.parametrize(("load", "sizes"), [(20, "fixed-20000"), (80, "uniform-1000-9000")])
def test_pairs_offer_the_load_with_headers_and_are_uniform(load: int, sizes: str) -> None:
    """40 bytes of headers for every 1460 of payload count (pFabric's ns-2 scripts)."""
    flows = pairs(HOSTS, 4, Traffic(10.0, 100.0), load=load, sizes=sizes)
    carried = sum(flow.size_bytes for flow in flows) * 1500 / 1460
    assert 100 * carried / (len(HOSTS) * 100e6 / 8 * 10) == pytest.approx(load, rel=5 / math.sqrt(len(flows)))
    assert_uniform(flows)


def assert_uniform(flows: Sequence[Flow]) -> None:
    """Each of the 240 pairs is equally likely, by a chi-square test at 5 sigma."""
    seen = Counter((flow.src, flow.dst) for flow in flows)
    assert len(seen) == 240 and all(src != dst for src, dst in seen)
    expected = len(flows) / 240
    chi2 = sum((count - expected) ** 2 / expected for count in seen.values())
    assert chi2 < 239 + 5 * math.sqrt(2 * 239)


def test_equal_flows_are_drawn_once() -> None:
    star = build_topology("star", {"n": 6})
    first = build("poisson", star, {"load": 30}, 4, TRAFFIC)
    assert build("poisson", star, {"load": 30}, 4, TRAFFIC) is first
    assert build("poisson", star, {"load": 30}, 5, TRAFFIC) != first
    assert build("poisson", star, {"load": 40}, 4, TRAFFIC) != first
    assert build("poisson", star, {"load": 30}, 4, Traffic(10.0, 100.0)) != first


def test_poisson_pairs_are_uniform_or_a_permutation() -> None:
    assert_uniform(poisson(HOSTS, 4, TRAFFIC, load=50, sizes="fixed-20000"))
    flows = poisson(HOSTS, 4, TRAFFIC, load=50, sizes="fixed-20000", pairs="fixed")
    receivers = {(flow.src, flow.dst) for flow in flows}
    assert len(receivers) == 16
    assert {dst for _, dst in receivers} == set(HOSTS)


def test_closed_loop_is_chains_that_outlast_the_run() -> None:
    flows = closed_loop(HOSTS, 6, TRAFFIC, think_ms=50, sizes="websearch", at_once=2)
    chains: dict[int, list[Flow]] = {}
    head: dict[int, int] = {}
    for number, flow in enumerate(flows):
        head[number] = number if flow.after is None else head[flow.after]
        chains.setdefault(head[number], []).append(flow)
    assert Counter(chain[0].src for chain in chains.values()) == dict.fromkeys(HOSTS, 2)
    for chain in chains.values():
        assert len({flow.src for flow in chain}) == 1
        least = [flow.start_s + flow.size_bytes * 8 / 100e6 for flow in chain]
        assert sum(least) >= TRAFFIC.seconds > sum(least[:-1])
    pauses = [flow.start_s for flow in flows]
    assert statistics.fmean(pauses) == pytest.approx(0.05, rel=5 / math.sqrt(len(pauses)))


def test_a_permuted_loop_is_one_chain_per_host_to_its_own_partner() -> None:
    flows = permuted_loop(HOSTS, 4, TRAFFIC, sizes="fixed-6000000")
    receivers = {(flow.src, flow.dst) for flow in flows}
    assert len(receivers) == 16 == len({dst for _, dst in receivers})
    for number, flow in enumerate(flows):
        assert flow.after is None or (flow.after == number - 1 and flows[flow.after].src == flow.src)
    assert len(flows) == 16 * 42, "0.48 s each"


def test_short_flows_come_at_their_mean_gap_beside_long_ones() -> None:
    hosts = [f"h{n}" for n in range(96)]
    flows = short_and_long(hosts, 2, TRAFFIC)
    long = [flow for flow in flows if not flow.size_bytes]
    short = [flow for flow in flows if flow.size_bytes]
    assert len(long) == 32
    assert not any(flow.plain for flow in long)
    assert all(flow.plain and flow.size_bytes == 70_000 for flow in short)
    assert not {flow.src for flow in long} & {flow.src for flow in short}
    assert len(short) == pytest.approx(64 * 20 / 0.2, rel=5 / math.sqrt(6400))
    receivers = {flow.src: flow.dst for flow in flows}
    assert len(set(receivers.values())) == len(receivers)


def test_alike_they_are_the_same_flows_over_one_transport() -> None:
    hosts = [f"h{n}" for n in range(12)]
    beside, alike = short_and_long(hosts, 2, TRAFFIC), short_and_long_alike(hosts, 2, TRAFFIC)
    assert alike == tuple(dataclasses.replace(flow, plain=False) for flow in beside)
    assert any(flow.plain for flow in beside)


def test_seeds_decide() -> None:
    for draw in (poisson, closed_loop, short_and_long):
        assert draw(HOSTS, 1, TRAFFIC) == draw(HOSTS, 1, TRAFFIC)
        assert draw(HOSTS, 1, TRAFFIC) != draw(HOSTS, 2, TRAFFIC)


def test_more_time_only_adds_flows() -> None:
    longer = poisson(HOSTS, 1, Traffic(30.0, 100.0))
    assert poisson(HOSTS, 1, TRAFFIC) == tuple(flow for flow in longer if flow.start_s < 20)


def test_texts_with_names_of_distributions() -> None:
    name, params = parse("poisson:60:sizes=fixed-70000:pairs=fixed")
    assert params == {"load": 60, "sizes": "fixed-70000", "pairs": "fixed"}
    assert label(name, params) == "poisson:60:sizes=fixed-70000:pairs=fixed"
    assert label(*parse("poisson:sizes=websearch")) == "poisson:40"
    with pytest.raises(UsageError, match="whole number"):
        parse("poisson:load=much")


def test_build_passes_the_traffic_to_generated_workloads() -> None:
    tree = build_topology("fat_tree", {"k": 4})
    params: dict[str, int | str] = {"load": 30, "sizes": "fixed-100000"}
    flows = build("poisson", tree, params, 3, TRAFFIC)
    names = [tree.nodes[host].name for host in tree.hosts]
    assert flows == poisson(names, 3, TRAFFIC, load=30, sizes="fixed-100000")
    with pytest.raises(ValueError, match="generated"):
        build("poisson", tree, params, 3)


@pytest.mark.parametrize(
    ("draw", "params", "words"),
    [
        (poisson, {"load": 0}, "load must be from 1 to 100"),
        (poisson, {"sizes": "fixed-1"}, "but the limit is 400000: lower the load"),
        (poisson, {"sizes": "tiny"}, "choose one of websearch"),
        (poisson, {"pairs": "any"}, "random or fixed"),
        (closed_loop, {"sizes": "fixed-10"}, "think longer"),
        (permuted_loop, {"sizes": "fixed-10"}, "make flows larger"),
        (closed_loop, {"think_ms": -1}, "think_ms must be"),
        (short_and_long, {"gap_ms": 0}, "gap_ms must be"),
        (short_and_long, {"long": 101}, "from 0 to 100"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(draw: object, params: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        draw(HOSTS, 1, TRAFFIC, **params)  # type: ignore[operator]


def test_flows_of_constant_rate_have_a_share_of_their_hosts_link_and_their_own_phase() -> None:
    flows = constant_rate(HOSTS, 3, TRAFFIC, percent=30, senders=50, dscp=46)
    assert len({flow.src for flow in flows}) == len({flow.dst for flow in flows}) == len(flows) == 8
    assert {(flow.rate_mbps, flow.dscp, flow.size_bytes) for flow in flows} == {(30.0, 46, 0)}
    interval_s = 1514 * 8 / 30e6
    assert all(0 <= flow.start_s < interval_s for flow in flows)
    assert len({flow.start_s for flow in flows}) == 8
    assert flows == constant_rate(HOSTS, 3, TRAFFIC, percent=30, senders=50, dscp=46)
    assert flows != constant_rate(HOSTS, 4, TRAFFIC, percent=30, senders=50, dscp=46)


def test_beside_constant_rate_a_workload_is_what_it_is_alone() -> None:
    topology = build_topology("star", {"n": 16})
    alone = build("one_to_one", topology, {}, 5)
    beside = build("beside_constant_rate", topology, {"percent": 20}, 5, TRAFFIC)
    assert beside[:16] == alone
    constant = beside[16:]
    assert [flow.rate_mbps for flow in constant] == [20.0] * 16
    partners = [(flow.src, flow.dst) for flow in constant]
    assert sorted(src for src, _ in partners) == sorted(flow.src for flow in alone)
    assert partners != [(flow.src, flow.dst) for flow in alone]
    poisson_beside = build("beside_constant_rate", topology, {"flows": "poisson"}, 5, TRAFFIC)
    assert poisson_beside[:-16] == build("poisson", topology, {}, 5, TRAFFIC)
