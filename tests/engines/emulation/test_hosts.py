"""Sysctls of a point's hosts, and which hosts the core's CPU receives for."""

from __future__ import annotations

import errno
import itertools
import os

import pytest

import topos
from common.errors import HostUnfitError
from engines.emulation.hosts import hosts as of_hosts
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


def test_a_restricted_congestion_control_names_the_command_that_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refused:
        def write_text(self, _value: str) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(of_hosts, "sysctl_path", lambda _name: Refused())
    with pytest.raises(
        HostUnfitError, match=r"sysctl -w net\.ipv4\.tcp_allowed_congestion_control=.reno cubic"
    ):
        of_hosts._write_sysctl("h1", "net.ipv4.tcp_congestion_control", "cubic")


@pytest.mark.parametrize("share", [0.0, 0.15, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("hosts", [1, 16, 128])
def test_a_share_of_the_hosts_is_chosen_and_evenly_spread(hosts: int, share: float) -> None:
    chosen = [number for number in range(hosts) if is_chosen(number, share)]
    assert len(chosen) == int(hosts * share)
    gaps = {after - before for before, after in itertools.pairwise(chosen)}
    assert len(gaps) <= 2
