"""iperf3 flows, TCP and MPTCP, from start to finish, with all that watches them."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from common.errors import HostUnfitError, RunError
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.kernel.sock_diag import SocketSampler
from engines.emulation.path_manager import PathManager
from engines.emulation.traffic.iperf3 import Iperf3Traffic, prefer_congestion_control
from model.flows import PlannedFlow
from tests.support.two_hosts import Pair, eventually, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.physics,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]

RATE_MBIT = 50
PAYLOAD = 1448 / 1514
CPORT, PORT = 10000, 5001


def flows_of(made: list[Pair], cc: str = "reno", subflows: int = 1, cport: int = CPORT) -> list[PlannedFlow]:
    ends = [(p.client.name, p.server.name, p.client_ip, p.server_ip, PORT, cport) for p in made]
    return [PlannedFlow(i, *each, cc=cc, subflows=subflows) for i, each in enumerate(ends)]


def hosts_of(made: list[Pair]) -> dict[str, HostRef]:
    return {host.name: host for pair in made for host in (pair.client, pair.server)}


def is_data(sport: int, dport: int) -> bool:
    return dport == PORT and sport == CPORT


def check_goodput(traffic: Iperf3Traffic, seconds: float = 1.0) -> None:
    start, before = time.monotonic(), traffic.received()
    time.sleep(seconds)
    elapsed, after = time.monotonic() - start, traffic.received()
    for first, last in zip(before, after, strict=True):
        assert first is not None
        assert last is not None
        mbps = (last - first) * 8e-6 / elapsed
        assert RATE_MBIT * PAYLOAD * 0.9 < mbps < RATE_MBIT * PAYLOAD * 1.05


def server_sockets(sampler: SocketSampler, server: HostRef) -> tuple[int, int]:
    """Count the TCP sockets of the data connection at its receiver, and all others there."""
    data = [s.path.rport < 20000 for s in sampler.tcp(server)]
    return sum(data), len(data) - sum(data)


def has_eight(sampler: SocketSampler, server: HostRef) -> bool:
    counts = sorted(connection.subflows or 0 for connection in sampler.mptcp(server))
    return server_sockets(sampler, server) == (8, 1) and counts == [1, 8]


def scenario_mixed_transports() -> None:
    """An MPTCP flow and a plain one side by side, each with its own congestion control, fill their links."""
    made = pairs(2, RATE_MBIT)
    hosts = hosts_of(made)
    mptcp, plain = flows_of(made, cc="cubic", subflows=4)[0], flows_of(made)[1]
    with (
        PathManager(list(hosts.values()), 4, is_data) as manager,
        SocketSampler(list(hosts.values())) as sampler,
        tempfile.TemporaryDirectory() as raw,
        Iperf3Traffic([mptcp, plain], hosts, Path(raw), seconds=60) as traffic,
    ):
        traffic.open()
        traffic.connect(30.0)
        assert manager.wait_all(1, 20), manager.reports()
        for flow, expected in ((mptcp, (4, 1)), (plain, (1, 1))):
            server = hosts[flow.dst]
            eventually(lambda: server_sockets(sampler, server) == expected, f"{expected} at {server}")  # noqa: B023
            assert {s.cc for s in sampler.tcp(hosts[flow.src]) if s.path.lport < 20000} == {flow.cc}
        assert not sampler.mptcp(hosts[plain.dst])
        time.sleep(0.5)
        check_goodput(traffic)
        traffic.check()
        for end in traffic.stop():
            assert not end.error
            assert end.received_bytes > 5_000_000


def scenario_mptcp_sixteen() -> None:
    """16 flows with 8 subflows each; control connections stay alone."""
    made = pairs(16)
    flows, hosts = flows_of(made, subflows=8), hosts_of(made)
    with (
        PathManager(list(hosts.values()), 8, is_data) as manager,
        SocketSampler(list(hosts.values())) as sampler,
        tempfile.TemporaryDirectory() as raw,
        Iperf3Traffic(flows, hosts, Path(raw), seconds=60) as traffic,
    ):
        traffic.open()
        traffic.connect(30.0)
        assert manager.wait_all(16, 20), manager.reports()
        for pair in made:
            # The server's end of a join is up one ACK after the client's, which the event reported.
            at = partial(has_eight, sampler, pair.server)
            eventually(at, f"8 subflows beside the control connection's one at {pair.server}")
        assert len(manager.reports()) == 16
        for end in traffic.stop():
            assert not end.error
            assert end.received_bytes > 100_000


def scenario_failures() -> None:
    """A taken port, a server that is gone, an unknown congestion control: each is named."""
    made = pairs(1)
    hosts = hosts_of(made)

    def traffic(cc: str = "reno", cport: int = CPORT) -> Iperf3Traffic:
        return Iperf3Traffic(flows_of(made, cc, cport=cport), hosts, Path("/tmp"), seconds=5)

    with traffic() as first:
        first.open()
        with traffic() as second, pytest.raises(RunError, match="Address already in use"):
            second.open()  # may see the first one's listener, and only later the failure
            second.connect(10.0)
            eventually(lambda: second.check() is not None, "the second server ends")  # type: ignore[func-returns-value]
    with traffic("nonesuch", CPORT + 1) as third:
        third.open()
        with pytest.raises(RunError, match=r"flow 0 \(c0 .*TCP_CONGESTION"):
            third.connect(10.0)
            eventually(lambda: third.check() is not None, "the client's end is noticed")  # type: ignore[func-returns-value]
    with pytest.raises(HostUnfitError, match="nonesuch"):
        prefer_congestion_control(dict.fromkeys(hosts.values(), "nonesuch"))


@pytest.mark.parametrize("scenario", [scenario_mixed_transports, scenario_failures])
def test_driver(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))


def test_sixteen_connections_of_eight_subflows() -> None:
    """Retry once: in one of nine runs the kernel's count of one connection stayed off for 10 s."""
    try:
        sys.stdout.write(run_isolated(scenario_mptcp_sixteen))
    except AssertionError as first:
        sys.stdout.write(f"once more, after: {first}\n")
        sys.stdout.write(run_isolated(scenario_mptcp_sixteen))
