"""Shares of a link: equal flows get equal shares, coupled subflows together get that of one TCP."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from analysis.shares import bottleneck_share
from fabric._core import Simulation
from model.spec import LinkSpec, TopologySpec
from tests.support import simulated_networks as lab

LANES = 8


def delivered(simulation: Simulation, warmup_ps: int, ends_ps: int) -> list[float]:
    simulation.run_until(warmup_ps)
    opened = simulation.flows()["delivered_bytes"].astype(float)
    simulation.run_until(ends_ps)
    return list(simulation.flows()["delivered_bytes"].astype(float) - opened)


@pytest.mark.parametrize("flows", [2, 8, 16])
def test_equal_flows_share_a_link_fairly(flows: int) -> None:
    """Jain's index above 0.95 with random drop near full, which keeps flows from losing in step."""
    topology = TopologySpec("dumbbell", {"n": flows, "lanes": 1})
    spec = lab.spec_of(topology, LinkSpec(100.0, 500.0, queue_pkts=100, random_pkts=30))
    network = lab.build(spec)
    rng = np.random.default_rng(1)
    starts = rng.integers(0, 500 * lab.MS, flows).tolist()
    sent = [lab.flow(network, i, (f"l0h{i}", f"r0h{i}"), start_ps=start) for i, start in enumerate(starts)]
    got = delivered(lab.simulate(spec, sent), 5 * lab.S, 35 * lab.S)
    capacity = 100e6 / 8 * 30 * lab.PLAIN.payload_bytes / lab.PACKET_BYTES
    assert sum(got) == pytest.approx(capacity, rel=1e-3)
    assert sum(got) ** 2 / (flows * sum(x * x for x in got)) > 0.95


def share(cc: str, subflows: int, loss: float = 0.001) -> float:
    """Return the share of one MPTCP flow beside one TCP, both with the same random loss, over replicas."""
    topology = TopologySpec("dumbbell", {"n": 2, "lanes": LANES})
    stack = dataclasses.replace(lab.PLAIN, reinject=False)
    spec = lab.spec_of(
        topology, LinkSpec(100.0, 5000.0, queue_pkts=2000, nic_queue_pkts=2000, loss=loss), stack
    )
    network = lab.build(spec)
    sent = [
        lab.flow(network, 2 * lane + i, (f"l{lane}h{i}", f"r{lane}h{i}"), subflows=n, cc=name)
        for lane in range(LANES)
        for i, (n, name) in enumerate(((subflows, cc), (1, "reno")))
    ]
    got = np.array(delivered(lab.simulate(spec, sent), 4 * lab.S, 34 * lab.S)).reshape(LANES, 2)
    return float(np.mean(got[:, 0] / got.sum(axis=1)))


@pytest.mark.parametrize("subflows", [2, 4])
def test_uncoupled_subflows_take_a_share_each(subflows: int) -> None:
    assert share("reno", subflows) == pytest.approx(bottleneck_share("reno", subflows), abs=0.03)


@pytest.mark.parametrize(("subflows", "fluctuating"), [(2, 0.523), (4, 0.548), (8, 0.572)])
def test_lia_takes_what_one_tcp_takes(subflows: int, fluctuating: float) -> None:
    """A half if windows stood still. LIA grows by the largest window, which exceeds the mean because windows
    oscillate: `fluctuating` is what benchmarks/window_model.py gives at this loss rate."""
    got = share("lia", subflows)
    assert got == pytest.approx(fluctuating, abs=0.03)
