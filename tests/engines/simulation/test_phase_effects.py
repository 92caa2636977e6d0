"""Senders that share a full queue: none is locked out by the phase of another, as none is between Linux hosts
(Floyd and Jacobson, On traffic phase effects in packet-switched gateways, 1992)."""

from __future__ import annotations

import dataclasses
import statistics

import numpy as np
import pytest

import topos
from model.network_plan import plan_for, port_rates_bps
from model.spec import LINUX, LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of
from workloads.flow import Flow
from workloads.trace import NAME as TRACE
from workloads.trace import written

LONG = 10**12
FT4 = TopologySpec("fat_tree", {"k": 4})
SINK, NEAR = "p0e0h0", "p0e0h1"


def to_one(senders: list[str], sink: str) -> WorkloadSpec:
    flows = [Flow(sender, sink, size_bytes=LONG) for sender in senders]
    return WorkloadSpec(TRACE, {"name": "to-one", "flows": written(flows)})


def spec(
    network: TopologySpec, workload: WorkloadSpec, rate_mbps: float = 100, seconds: float = 10, **more: object
) -> RunSpec:
    base = RunSpec(
        LinkSpec(rate_mbps), network, TransportSpec(1, "reno"), workload,
        engine="simulator", warmup_s=200 / rate_mbps, seconds=seconds,
    )  # fmt: skip
    return dataclasses.replace(base, **more)  # type: ignore[arg-type]


def goodputs(of: RunSpec) -> list[float]:
    return [flow.goodput_mbps for flow in result_of(of).flows]


@pytest.mark.parametrize("senders", [2, 3, 10])
@pytest.mark.parametrize("subflows", [1, 4])
def test_each_of_several_senders_to_one_host_gets_a_share(senders: int, subflows: int) -> None:
    star = TopologySpec("star", {"n": senders + 1})
    workload = to_one([f"s1h{i}" for i in range(senders)], f"s1h{senders}")
    transport = TransportSpec(subflows, "lia" if subflows > 1 else "reno")
    got = goodputs(spec(star, workload, transport=transport))
    assert sum(got) == pytest.approx(95.6, rel=0.01)
    assert min(got) > 0.3 * sum(got) / senders


def test_without_either_remedy_one_takes_all() -> None:
    """What the remedies are for: should this fail one day, they may be needless."""
    star = TopologySpec("star", {"n": 3})
    link, stack = LinkSpec(100.0, clock_ppm=0.0), StackSpec(processing_frames=0.0)
    got = goodputs(spec(star, to_one(["s1h0", "s1h1"], "s1h2"), link=link, stack=stack))
    assert min(got) < 0.01 * max(got)


def test_of_a_near_and_twelve_far_senders_the_near_one_has_the_least() -> None:
    """TCP Outcast (Prakash et al., NSDI 2012). With Linux hosts at 10 Mb/s the near one had 0.24 Mb/s."""
    topology = topos.build("fat_tree", {"k": 4})
    far = [name for name in topology.host_names if name not in (SINK, NEAR)][:12]
    got = goodputs(spec(FT4, to_one([NEAR, *far], SINK), 10.0, 40.0, stack=LINUX))
    assert 0.1 * statistics.mean(got[1:]) < got[0] < 0.8 * statistics.mean(got[1:])
    assert min(got) > 0.1


def test_short_queues_starve_no_flow_of_a_permutation() -> None:
    """Linux hosts in virtual time, seed 1: the slowest has 0.50 Mb/s, Jain's index is 0.753."""
    short = LinkSpec(10.0, queue_pkts=10, nic_queue_pkts=10)
    got = goodputs(spec(FT4, WorkloadSpec("one_to_one"), 10.0, 40.0, link=short))
    assert min(got) > 0.1
    assert sum(got) ** 2 / len(got) / sum(each**2 for each in got) == pytest.approx(0.753, abs=0.08)


def test_one_flow_alone_still_fills_its_link() -> None:
    star = TopologySpec("star", {"n": 2})
    (alone,) = goodputs(spec(star, to_one(["s1h0"], "s1h1"), stack=StackSpec(processing_frames=1.0)))
    assert alone == pytest.approx(100 * 1448 / 1514, rel=3e-4)


def test_clocks_are_each_nodes_own_and_within_their_tolerance() -> None:
    of = spec(FT4, WorkloadSpec("one_to_one"))
    topology = topos.build("fat_tree", {"k": 4})
    error = plan_for(of, topology).rate_bps / port_rates_bps(topology, of.link) - 1
    assert 5e-5 < np.abs(error).max() <= 1e-4
    sender = [end for link in topology.links for end in (link.a, link.b)]
    by_node: dict[int, set[float]] = {}
    for node, of_port in zip(sender, error.tolist(), strict=True):
        by_node.setdefault(node, set()).add(round(of_port * 1e6))
    assert all(len(errors) == 1 for errors in by_node.values())
    assert len({frozenset(errors) for errors in by_node.values()}) > 20
    other = plan_for(dataclasses.replace(of, seed=2), topology).rate_bps
    assert (other != plan_for(of, topology).rate_bps).any()
    exact = dataclasses.replace(of, link=LinkSpec(100.0, clock_ppm=0.0))
    assert set(plan_for(exact, topology).rate_bps.tolist()) == {100_000_000}
