"""The computed best possible times, against an idle fabric to the picosecond."""

from __future__ import annotations

from pathlib import Path

import pytest

import topos
from engines.engine import Silent
from engines.flow_level.ideal import IdealEngine
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

LEAF_SPINE = TopologySpec("leaf_spine", {"leaves": 3, "spines": 2, "hosts": 4, "speed": 2})
STACK = StackSpec(
    payload_bytes=1460, header_bytes=40, ack_bytes=40, initial_window=5000,
    delayed_ack_ms=0.0, min_rto_ms=1000.0, processing_frames=0.0,
)  # fmt: skip
RATE_MBPS = 10_000.0
SIZES = (1459, 1460, 1461, 2920, 2921, 14_600, 100_000, 1_000_003)


def spec(
    size: int, *, engine: str = "simulator", discipline: str = "fifo", routing: str = "hashed"
) -> RunSpec:
    """About fifty flows of one size, so far apart in time that each is alone."""
    seconds = 50 * size * 8 / (0.01 * 12 * RATE_MBPS * 1e6)
    link = LinkSpec(
        RATE_MBPS, 0.2, queue_pkts=0, host_delay_us=2.5, nic_queue_pkts=1,
        discipline=discipline, clock_ppm=0.0,
    )  # fmt: skip
    traffic = WorkloadSpec("pairs", {"load": 1, "sizes": f"fixed-{size}"})
    return RunSpec(
        link, LEAF_SPINE, TransportSpec(1, "reno"), traffic,
        engine=engine, routing=routing, warmup_s=0.0, seconds=seconds, stack=STACK,
    )  # fmt: skip


@pytest.mark.parametrize("discipline", ["fifo", "pfabric"])
@pytest.mark.parametrize("size", SIZES)
def test_a_flow_alone_takes_the_computed_time_to_the_picosecond(size: int, discipline: str) -> None:
    result = result_of(spec(size, discipline=discipline))
    times = [
        (round(f.completed_s * 1e12), round(f.ideal_s * 1e12)) for f in result.flows if f.completed_s > 0
    ]
    assert len(times) >= 20
    alone = [took == ideal for took, ideal in times]
    assert all(took >= ideal for took, ideal in times)
    assert sum(alone) / len(alone) > 0.8  # a few meet another flow at 1 % load


def test_with_spraying_a_short_last_packet_may_overtake_the_one_before_it() -> None:
    result = result_of(spec(1461, routing="scatter"))
    sooner = [f.ideal_s - f.completed_s for f in result.flows if f.completed_s > 0]
    overtaken_s = 41 * 8 / (RATE_MBPS * 1e6)
    assert 0 < max(sooner) <= overtaken_s + 1e-12


def test_the_times_differ_within_and_across_leaves() -> None:
    result = result_of(spec(1460))
    topology = topos.build(LEAF_SPINE.kind, LEAF_SPINE.params)
    leaf = {topology.nodes[h].name: topology.attachment(topology.nics_of(h)[0]) for h in topology.hosts}
    within = {f.ideal_s for f in result.flows if leaf[f.src] == leaf[f.dst]}
    across = {f.ideal_s for f in result.flows if leaf[f.src] != leaf[f.dst]}
    tx_us = 1500 * 8 / 10_000
    assert [round(t * 1e6, 6) for t in within] == [round(2 * (tx_us + 2.7), 6)]
    assert [round(t * 1e6, 6) for t in across] == [round(2 * (tx_us + 2.7) + 2 * (tx_us / 2 + 0.2), 6)]


def test_the_ideal_scheduler_gives_a_flow_alone_its_best_time_and_never_less() -> None:
    of = spec(100_000, engine="ideal")
    IdealEngine().check(of)
    result = IdealEngine().run(of, Silent(), Path())
    ratios = [f.completed_s / f.ideal_s for f in result.flows if f.completed_s > 0]
    assert min(ratios) == pytest.approx(1, abs=1e-12)
    assert sum(ratio < 1 + 1e-12 for ratio in ratios) / len(ratios) > 0.8
