"""Tunings: their names, and the default of each kind of point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

import topos
from model import tuning
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from model.tuning import CAPPED_RESERVE, KERNELS_OWN, RESERVE, RMEM, ROOM_FROM_THE_START, WMEM, words


def default(spec: RunSpec) -> Mapping[str, str]:
    if not spec.topology.params:
        spec = replace(spec, topology=TopologySpec("fat_tree", {"k": 4}))
    topology = spec.network()
    return tuning.default(spec, topology, planned_flows(spec, topology))


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        (TransportSpec(8), "default"),
        (TransportSpec(8, sysctls=KERNELS_OWN), "kernel's own"),
        (TransportSpec(8, sysctls={"net.mptcp.scheduler": "default"}), "scheduler default"),
        (TransportSpec(8, sysctls=RESERVE, write_bytes=1000), "tcp_wmem 4M 16K 4M, writes of 1000"),
    ],
)
def test_words(transport: TransportSpec, expected: str) -> None:
    assert words(transport) == expected


MPTCP = TransportSpec(8)
CAPPED = {**CAPPED_RESERVE, RMEM: "4096 25165824 33554432"}
"""Four bytes of buffer for each of the 4 MB and 8 times 256 kB that a sender may have in flight."""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (RunSpec(LinkSpec(5.0)), {}),
        (RunSpec(LinkSpec(5.0), transport=MPTCP), CAPPED),
        (RunSpec(LinkSpec(1000.0), transport=MPTCP), CAPPED),
        (RunSpec(LinkSpec(60.0, delay_us=13_000, queue_pkts=1000), transport=MPTCP), RESERVE),
        (RunSpec(LinkSpec(100.0, delay_us=1000), transport=MPTCP), RESERVE),
        (RunSpec(LinkSpec(5.0, queue_pkts=0), transport=MPTCP), RESERVE),
        (RunSpec(LinkSpec(5.0, queue_pkts=0, queue_bytes=100_000), transport=MPTCP), CAPPED),
    ],
)
def test_mptcp_has_the_reserve_and_its_cap_where_that_holds_a_path(
    spec: RunSpec, expected: dict[str, str]
) -> None:
    assert default(spec) == expected


@pytest.mark.parametrize(
    ("matrix", "room"),
    [("permuted_loop", True), ("transfers", True), ("one_to_one", False)],
)
def test_without_a_cap_there_is_room_where_mptcps_flows_end(matrix: str, room: bool) -> None:
    link, workload = LinkSpec(20.0, queue_pkts=0), WorkloadSpec(matrix)
    expected = {**RESERVE, **(ROOM_FROM_THE_START if room else {})}
    assert default(RunSpec(link, transport=MPTCP, workload=workload)) == expected
    assert default(RunSpec(link, workload=workload)) == {}


@pytest.mark.parametrize("sysctls", [KERNELS_OWN, RESERVE])
def test_given_send_buffers_leave_the_receivers_to_the_kernel(sysctls: Mapping[str, str]) -> None:
    """Otherwise `kernel's own` in a chart would be the kernel's senders with our receivers."""
    assert default(RunSpec(LinkSpec(20.0), transport=TransportSpec(8, sysctls=sysctls))) == {}
    receiver = {RMEM: "4096 131072 33554432"}
    assert default(RunSpec(LinkSpec(20.0), transport=TransportSpec(8, sysctls=receiver))) == CAPPED


def test_plain_tcp_receives_beside_mptcp_as_it_does_alone() -> None:
    beside = RunSpec(LinkSpec(20.0), transport=MPTCP, workload=WorkloadSpec("short_and_long"))
    assert default(beside).keys() == {WMEM}


@pytest.mark.parametrize(
    ("oversubscription", "workload", "sharing", "reserve", "cap"),
    [
        (1, WorkloadSpec("one_to_one"), 8, 4 << 20, 256 << 10),
        (1, WorkloadSpec("one_to_several", {"clients": 4}), 32, 1 << 20, 64 << 10),
        (4, WorkloadSpec("connections", {"percent": 25}), 8, 4 << 20, 256 << 10),
        (4, WorkloadSpec("connections", {"percent": 200}), 64, 1 << 20, 32 << 10),
        (4, WorkloadSpec("connections", {"percent": 400}), 128, 1 << 20, 32 << 10),
    ],
)
def test_the_more_subflows_share_a_link_the_less_each_may_hold(
    oversubscription: int, workload: WorkloadSpec, sharing: float, reserve: int, cap: int
) -> None:
    params = {"k": 4, "oversubscription": oversubscription}
    spec = RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", params), MPTCP, workload)
    topology = topos.build("fat_tree", params)
    assert tuning.sharing(topology, planned_flows(spec, topology)) == sharing
    assert default(spec)[WMEM] == f"{reserve} 16384 {cap}"


@pytest.mark.parametrize("subflows", [2, 8, 32])
def test_a_receiver_holds_all_that_a_sender_may_have_under_way(subflows: int) -> None:
    sysctls = default(RunSpec(LinkSpec(10.0), transport=TransportSpec(subflows)))
    (reserve, _, cap), (_, room, most) = (map(int, sysctls[name].split()) for name in (WMEM, RMEM))
    assert room // 2 >= 2 * (reserve + subflows * cap)
    assert most >= room
