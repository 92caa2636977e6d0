"""LIA at two bottlenecks: how its packets are acknowledged decides how far it leaves the worse one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from analysis.shares import congested_share, congested_shares_pct
from engines.registry import SIMULATOR
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

LANES = 24


def on_worse_path_pct(stack: StackSpec) -> float:
    """Return LIA's share of traffic on the worse of two paths as in coupled-shift, mean over replicas."""
    spec = RunSpec(
        LinkSpec(10.0, 5000.0, queue_pkts=100, random_pkts=5),
        TopologySpec("two_bottlenecks", {"first": 3, "second": 1, "lanes": LANES}),
        workload=WorkloadSpec("against_tcp"),
        transport=TransportSpec(2, "lia"),
        engine=SIMULATOR,
        stack=dataclasses.replace(stack, recovery="linux", start_spread_ms=1000.0),
        warmup_s=30.0,
        seconds=40.0,
    )
    return float(np.mean(congested_shares_pct(result_of(spec).ports)))


def test_every_second_packet_acknowledged_gives_the_formula() -> None:
    theory = 100 * congested_share("lia", 3, 1)
    assert on_worse_path_pct(StackSpec()) == pytest.approx(theory, abs=4)


def test_packet_by_packet_it_leaves_further() -> None:
    """Single packets meet a full queue one by one, where a pair is lost together and cuts its window once."""
    assert on_worse_path_pct(StackSpec(ack_gaps=True)) < 0.8 * on_worse_path_pct(StackSpec())
