"""What the emulation engine refuses before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import UsageError
from engines.emulation.engine import MininetEngine, check_sysctls
from engines.emulation.hosts import shell
from model.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec, TransportSpec


def test_a_sysctl_must_be_one_of_this_kernel() -> None:
    check_sysctls(["net.ipv4.tcp_sack"])
    for wrong in ("net.ipv4.tcp_snack", "net.ipv4"):
        with pytest.raises(UsageError, match=f"--sysctl {wrong}: this kernel has no such sysctl"):
            check_sysctls([wrong])


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"topology": TopologySpec("bcube", {"n": 4})}, "bcube: emulated hosts do not forward packets"),
        ({"events": (LinkEvent(1.0, "p0e0", "moon"),)}, "no node called 'moon'"),
        ({"routing": "valiant"}, "routing 'valiant': pings cannot follow its paths"),
        ({"link": LinkSpec(5.0, discipline="magic")}, "discipline 'magic': choose fifo or priority"),
        (
            {"link": LinkSpec(5.0, discipline="priority"), "dataplane": "ovs"},
            "queue discipline priority .* Open vSwitch.*: choose --dataplane fabric",
        ),
    ],
)
def test_the_emulator_leaves_to_the_simulator_what_it_cannot_do(
    asked: dict[str, Any], complaint: str
) -> None:
    spec = RunSpec(**{"link": LinkSpec(5.0), "topology": TopologySpec("fat_tree", {"k": 4}), **asked})
    with pytest.raises(UsageError, match=complaint):
        MininetEngine().check(spec)


@pytest.mark.parametrize(
    ("link", "traffic", "subflows", "words"),
    [
        ({}, "iperf3", 1, "iperf3 does not report the sizes of flows; choose --traffic native"),
        ({}, "native", 2, "real hosts stamp ranks on TCP alone; choose --subflows 1"),
        ({"host_queue": "qdisc"}, "native", 1, "sends in order of arrival; leave out --host-queue qdisc"),
    ],
)
def test_ranks_need_flow_sizes_plain_tcp_and_queues_that_sort(
    link: dict[str, Any], traffic: str, subflows: int, words: str
) -> None:
    spec = RunSpec(
        LinkSpec(10.0, discipline="pfabric", **link), TopologySpec("star", {"n": 4}),
        TransportSpec(subflows, "reno"), traffic=traffic,
    )  # fmt: skip
    with pytest.raises(UsageError, match=words):
        MininetEngine().check(spec)


def test_no_shell_opens_where_hosts_forward() -> None:
    with pytest.raises(UsageError, match="do not forward packets"):
        shell.main("bcube,4", 10.0, 100)


@pytest.mark.parametrize(
    ("late", "words"),
    [
        ({"join_after_bytes": 100_000}, "after 100 kB: the kernel has no event"),
        ({"join_after_ms": 20_000.0}, "use a longer --warmup"),
    ],
)
def test_late_joins_that_no_kernel_can_are_refused(late: dict[str, Any], words: str) -> None:
    tree, transport = TopologySpec("fat_tree", {"k": 4}), TransportSpec(8, "reno", **late)
    spec = RunSpec(LinkSpec(5.0), tree, transport, warmup_s=6.0)
    with pytest.raises(UsageError, match=words):
        MininetEngine().check(spec)
