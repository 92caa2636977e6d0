"""Tunings: their names, and which is the default where."""

from __future__ import annotations

import pytest

from engines.spec import LinkSpec, RunSpec, TransportSpec, WorkloadSpec
from engines.tuning import CAPPED_RESERVE, KERNELS_OWN, RESERVE, ROOM_FROM_THE_START, default, words


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        (TransportSpec(8), "default"),
        (TransportSpec(8, sysctls=KERNELS_OWN), "kernel's own"),
        (TransportSpec(8, sysctls=KERNELS_OWN, write_bytes=4096), "writes of 4K"),
        (TransportSpec(8, sysctls=RESERVE), "tcp_wmem 4M 16K 4M"),
        (TransportSpec(8, write_bytes=4096), "writes of 4K"),
        (
            TransportSpec(
                8, sysctls={"net.mptcp.scheduler": "default", "net.ipv4.tcp_notsent_lowat": "1000"}
            ),
            "tcp_notsent_lowat 1000, scheduler default",
        ),
        (TransportSpec(8, sysctls=RESERVE, write_bytes=1000), "tcp_wmem 4M 16K 4M, writes of 1000"),
    ],
)
def test_words(transport: TransportSpec, expected: str) -> None:
    assert words(transport) == expected


MPTCP = TransportSpec(8)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (RunSpec(LinkSpec(5.0)), {}),
        (RunSpec(LinkSpec(5.0), transport=MPTCP), CAPPED_RESERVE),
        (RunSpec(LinkSpec(1000.0), transport=MPTCP), CAPPED_RESERVE),
        (RunSpec(LinkSpec(60.0, delay_us=13_000, queue_pkts=1000), transport=MPTCP), RESERVE),
        (RunSpec(LinkSpec(100.0, delay_us=1000), transport=MPTCP), RESERVE),
        (RunSpec(LinkSpec(5.0, queue_pkts=0), transport=MPTCP), RESERVE),
        (RunSpec(LinkSpec(5.0, queue_pkts=0, queue_bytes=100_000), transport=MPTCP), CAPPED_RESERVE),
    ],
)
def test_mptcp_has_the_reserve_and_its_cap_where_that_holds_a_path(
    spec: RunSpec, expected: dict[str, str]
) -> None:
    assert default(spec) == expected


@pytest.mark.parametrize(
    ("matrix", "room"),
    [("permuted_loop", True), ("in_turn", True), ("one_to_one", False), ("short_and_long", False)],
)
def test_a_receiver_has_room_from_the_start_where_mptcps_flows_end(matrix: str, room: bool) -> None:
    """Long flows outlast the kernel's autotuning; plain TCP's short ones are to be the same beside any."""
    link, workload = LinkSpec(20.0), WorkloadSpec(matrix)
    expected = {**CAPPED_RESERVE, **(ROOM_FROM_THE_START if room else {})}
    assert default(RunSpec(link, transport=MPTCP, workload=workload)) == expected
    assert default(RunSpec(link, workload=workload)) == {}
