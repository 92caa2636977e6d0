"""Sysctls of a point's hosts, and which hosts the core's CPU receives for."""

from __future__ import annotations

import itertools

import pytest

import topos
from engines.emulation.hosts.hosts import is_chosen, sysctls_of
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec


def needed(spec: RunSpec) -> dict[str, str]:
    topology = topos.build("fat_tree", {"k": 4})
    return sysctls_of(spec, topology, planned_flows(spec, topology))


def test_sysctls_follow_the_network() -> None:
    """ECN is negotiated where links mark, and reordering tolerated where packets scatter."""
    usual = needed(RunSpec(LinkSpec(10.0)))
    assert usual == {"net.ipv4.tcp_no_metrics_save": "1"}
    assert needed(RunSpec(LinkSpec(10.0, ecn_pkts=20)))["net.ipv4.tcp_ecn"] == "1"
    assert needed(RunSpec(LinkSpec(10.0), routing="scatter")).keys() > {"net.ipv4.tcp_recovery"}
    assert needed(RunSpec(LinkSpec(10.0), routing="ecmp")) == usual


@pytest.mark.parametrize("share", [0.0, 0.15, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("hosts", [1, 16, 128])
def test_a_share_of_the_hosts_is_chosen_and_evenly_spread(hosts: int, share: float) -> None:
    chosen = [number for number in range(hosts) if is_chosen(number, share)]
    assert len(chosen) == int(hosts * share)
    gaps = {after - before for before, after in itertools.pairwise(chosen)}
    assert len(gaps) <= 2
