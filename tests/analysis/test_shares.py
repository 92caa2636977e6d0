from __future__ import annotations

import dataclasses

import pytest

from analysis.shares import bottleneck_shares_pct, congested_shares_pct
from model.result import FlowRow, PortRow


def flow(src: str, goodput_mbps: float) -> FlowRow:
    return FlowRow(0, src, "", "", "", 1100, 5201, "tcp", 1, 1, "reno", goodput_mbps, 1, 0, 0.1)


def port(node: str, peer: str, tx_bytes: int, layer: str = "host-edge") -> PortRow:
    return PortRow(0, node, peer, layer, 1, tx_bytes, 0, 1, 50.0)


def test_the_share_of_a_replica_is_that_of_its_first_flow() -> None:
    flows = [flow("l0h0", 3.0), flow("l1h0", 1.0), flow("l0h1", 1.0), flow("l1h1", 1.0), flow("l1h2", 2.0)]
    assert bottleneck_shares_pct(flows) == [75.0, 25.0]
    assert bottleneck_shares_pct([flow("p0e0h0", 1.0)]) == []
    assert bottleneck_shares_pct([flow("l0h0", 0.0)]) == []


def test_only_a_sender_with_two_nics_has_a_worse_path() -> None:
    ports = [
        port("l0h0", "l0a", 100), port("l0a", "l0h0", 7, "edge-host"), port("l0h0", "l0b", 300),
        port("l0ah1", "l0a", 900), port("r0h0", "r0a", 5), port("r0h0", "r0b", 5),
    ]  # fmt: skip
    assert congested_shares_pct(ports) == [25.0]
    assert congested_shares_pct([dataclasses.replace(each, tx_bytes=0) for each in ports]) == []


@pytest.mark.parametrize("shares", [bottleneck_shares_pct, congested_shares_pct])
def test_no_rows_no_shares(shares: object) -> None:
    assert callable(shares) and shares([]) == []
