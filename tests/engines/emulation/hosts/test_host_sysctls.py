from __future__ import annotations

import topos
from engines.emulation.hosts import host_sysctls
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec


def needed(spec: RunSpec) -> dict[str, str]:
    topology = topos.build("fat_tree", {"k": 4})
    return host_sysctls.needed(spec, topology, planned_flows(spec, topology))


def test_links_that_mark_want_hosts_that_ask_for_it() -> None:
    assert needed(RunSpec(LinkSpec(10.0, ecn_pkts=20)))["net.ipv4.tcp_ecn"] == "1"


def test_scattered_packets_want_hosts_that_wait_for_them() -> None:
    assert needed(RunSpec(LinkSpec(10.0), routing="scatter")).keys() > {"net.ipv4.tcp_recovery"}
    assert needed(RunSpec(LinkSpec(10.0), routing="ecmp")) == needed(RunSpec(LinkSpec(10.0)))


def test_nothing_else_touches_what_a_kernel_does_by_default() -> None:
    assert needed(RunSpec(LinkSpec(10.0))) == {"net.ipv4.tcp_no_metrics_save": "1"}
