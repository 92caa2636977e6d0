"""Switches that balance load spread the flows that simulated hosts send, whatever their numbers and NICs."""

from __future__ import annotations

import pytest

from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.figures import simulate

LEAVES, SPINES, HOSTS = 2, 4, 8


@pytest.mark.parametrize("routing", ["letflow:500", "conga:500:160", "drill:2:1", "presto:64"])
def test_flows_from_one_leaf_use_all_its_uplinks(routing: str) -> None:
    shape = {"leaves": LEAVES, "spines": SPINES, "hosts": HOSTS, "speed": 2}
    spec = RunSpec(
        LinkSpec(100.0), TopologySpec("leaf_spine", shape), TransportSpec(1, "reno"),
        WorkloadSpec("stride", {"i": HOSTS}), engine="simulator", routing=routing, warmup_s=0.2, seconds=0.5,
    )  # fmt: skip
    uplinks = [row.tx_bytes for row in simulate(spec).ports if row.node == "l0" and row.peer.startswith("s")]
    assert len(uplinks) == SPINES
    assert min(uplinks) > 0.1 * sum(uplinks), uplinks
