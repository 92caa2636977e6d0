"""What the emulation engine refuses before anything starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.errors import UsageError
from engines.emulation.engine import MininetEngine
from engines.emulation.flows import check_sysctls
from engines.emulation.hosts import shell
from model.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec, TransportSpec


def test_a_sysctl_must_be_one_of_this_kernel() -> None:
    check_sysctls(["net.ipv4.tcp_sack"])
    for wrong in ("net.ipv4.tcp_snack", "net.ipv4"):
        with pytest.raises(UsageError, match=f"--sysctl {wrong}: this kernel has no such sysctl"):
            check_sysctls([wrong])


RANKED: dict[str, Any] = {"link": LinkSpec(5.0, discipline="pfabric"), "traffic": "native"}


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
        ({**RANKED, "traffic": "iperf3"}, "choose --traffic native"),
        ({**RANKED, "transport": TransportSpec(2, "reno")}, "choose --subflows 1"),
        ({**RANKED, "link": replace(RANKED["link"], host_queue="qdisc")}, "leave out --host-queue qdisc"),
        ({"transport": TransportSpec(8, "reno", join_after_bytes=100_000)}, "the kernel has no event"),
        ({"transport": TransportSpec(8, "reno", join_after_ms=20_000.0)}, "use a longer --warmup"),
    ],
)
def test_the_emulator_refuses_what_it_cannot_do(asked: dict[str, Any], complaint: str) -> None:
    usual = {"topology": TopologySpec("fat_tree", {"k": 4}), "transport": TransportSpec(1, "reno")}
    with pytest.raises(UsageError, match=complaint):
        MininetEngine().check(RunSpec(**{"link": LinkSpec(5.0), "warmup_s": 6.0, **usual, **asked}))


def test_no_shell_opens_where_hosts_forward() -> None:
    with pytest.raises(UsageError, match="do not forward packets"):
        shell.main("bcube,4", 10.0, 100)
