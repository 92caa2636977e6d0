"""iperf3 flows, TCP and MPTCP, from start to finish, with all that watches them."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import DeadlineError, HostUnfitError, RunError
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.path_manager import PathManager
from engines.emulation.traffic.iperf3 import Iperf3Driver, Iperf3Flow, prefer_congestion_control
from model.flows import AddressPair
from tests.support.two_hosts import Pair, eventually, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.physics,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]

RATE_MBIT = 50
PAYLOAD = 1448 / 1514


def flows_of(made: list[Pair], cport: int = 10000, cc: str = "reno", mptcp: bool = False) -> list[Iperf3Flow]:
    return [
        Iperf3Flow(i, pair.client, pair.server, pair.client_ip, pair.server_ip, 5001, cport, cc, mptcp)
        for i, pair in enumerate(made)
    ]


def hosts_of(made: list[Pair]) -> list[HostRef]:
    return [host for pair in made for host in (pair.client, pair.server)]


def receiver_paths(flows: list[Iperf3Flow]) -> list[tuple[HostRef, AddressPair]]:
    return [(f.server, AddressPair(f.server_ip, f.port, f.client_ip, f.cport)) for f in flows]


def is_data(sport: int, dport: int) -> bool:
    return dport == 5001 and sport == 10000


def scenario_reno_then_cubic() -> None:
    """One after the other on the same hosts, from fresh client ports."""
    made = pairs(2, RATE_MBIT)
    for cc, cport in (("reno", 10000), ("cubic", 10001)):
        flows = flows_of(made, cport, cc)
        prefer_congestion_control(dict.fromkeys(hosts_of(made), cc))
        with (
            SocketSampler(hosts_of(made)) as sampler,
            tempfile.TemporaryDirectory() as raw,
            Iperf3Driver(flows, sampler, Path(raw), seconds=60) as driver,
        ):
            driver.start_servers()
            driver.start_clients()
            meter = ReceiveMeter(sampler, receiver_paths(flows))
            eventually(lambda: None not in meter.sample(), "both flows are up")  # noqa: B023
            time.sleep(0.5)
            check_goodput(meter)
            for flow in flows:
                path = AddressPair(flow.client_ip, flow.cport, flow.server_ip, flow.port)
                found = sampler.tcp_at(flow.client, path)
                assert found is not None
                assert found.cc == cc
            driver.check()
            for outcome in driver.stop():
                assert outcome.cc == cc
                assert not outcome.error
                assert outcome.received_bytes > 5_000_000


def has_failed(driver: Iperf3Driver) -> bool:
    try:
        driver.check()
    except RunError as error:
        assert "ended early" in str(error)
        return True
    return False


def check_goodput(meter: ReceiveMeter, seconds: float = 1.0) -> None:
    start, before = time.monotonic(), meter.sample()
    time.sleep(seconds)
    elapsed, after = time.monotonic() - start, meter.sample()
    for first, last in zip(before, after, strict=True):
        assert first is not None
        assert last is not None
        mbps = (last - first) * 8e-6 / elapsed
        assert RATE_MBIT * PAYLOAD * 0.9 < mbps < RATE_MBIT * PAYLOAD * 1.05


def server_sockets(sampler: SocketSampler, flow: Iperf3Flow) -> tuple[int, int]:
    """Count the TCP sockets of the flow's data connection, and all others at its receiver."""
    data = [s.path.rport < 20000 for s in sampler.tcp(flow.server)]
    return sum(data), len(data) - sum(data)


def subflow_counts(sampler: SocketSampler, flow: Iperf3Flow) -> list[int]:
    return sorted(c.subflows or 0 for c in sampler.mptcp(flow.server))


def scenario_mptcp_sixteen() -> None:
    """16 flows with 8 subflows each; control connections stay alone."""
    made = pairs(16)
    flows, hosts = flows_of(made, mptcp=True), hosts_of(made)
    with (
        PathManager(hosts, 8, is_data) as manager,
        SocketSampler(hosts) as sampler,
        tempfile.TemporaryDirectory() as raw,
        Iperf3Driver(flows, sampler, Path(raw), seconds=60) as driver,
    ):
        start = time.monotonic()
        driver.start_servers()
        servers_s = time.monotonic() - start
        driver.start_clients()
        assert manager.wait_all(16, 20), manager.reports()
        print(f"16 servers {servers_s:.2f} s, all 128 subflows {time.monotonic() - start:.2f} s")
        for flow in flows:
            # The server's end of a join is up one ACK after the client's, which the event reported.
            eventually(lambda: server_sockets(sampler, flow) == (8, 1), f"8 and 1 subflows of {flow}")  # noqa: B023
            eventually(lambda: subflow_counts(sampler, flow) == [1, 8], f"1 and 8 subflows of {flow}")  # noqa: B023
            assert {s.cc for s in sampler.tcp(flow.client) if s.path.lport < 20000} == {"reno"}
        assert len(manager.reports()) == 16
        time.sleep(1)
        for outcome in driver.stop():
            assert not outcome.error
            assert outcome.received_bytes > 100_000
        print(f"stopped after {time.monotonic() - start:.2f} s")


def scenario_mixed_transports() -> None:
    """An MPTCP flow and a plain one side by side, each with its own congestion control."""
    made = pairs(2, RATE_MBIT)
    hosts = hosts_of(made)
    mptcp, plain = flows_of(made[:1], cc="cubic", mptcp=True)[0], flows_of(made)[1]
    with (
        PathManager(hosts, 4, is_data) as manager,
        SocketSampler(hosts) as sampler,
        tempfile.TemporaryDirectory() as raw,
        Iperf3Driver([mptcp, plain], sampler, Path(raw), seconds=60) as driver,
    ):
        driver.start_servers()
        driver.start_clients()
        assert manager.wait_all(1, 20), manager.reports()
        eventually(lambda: server_sockets(sampler, mptcp) == (4, 1), "4 subflows beside the control's one")
        eventually(lambda: server_sockets(sampler, plain) == (1, 1), "one socket beside the control's one")
        assert not sampler.mptcp(plain.server)
        for flow in (mptcp, plain):
            assert {s.cc for s in sampler.tcp(flow.client) if s.path.lport < 20000} == {flow.cc}
        time.sleep(0.5)
        assert all(not outcome.error for outcome in driver.stop())


def scenario_finish() -> None:
    """Left alone, a flow ends by itself, and iperf3 and we agree on the bytes."""
    made = pairs(1, RATE_MBIT)
    flows = flows_of(made)
    with (
        SocketSampler(hosts_of(made)) as sampler,
        tempfile.TemporaryDirectory() as raw,
        Iperf3Driver(flows, sampler, Path(raw), seconds=1.5) as driver,
    ):
        driver.start_servers()
        driver.start_clients()
        with pytest.raises(DeadlineError):
            driver.finish(0.3)
        meter = ReceiveMeter(sampler, receiver_paths(flows))
        seen = 0
        while (sample := meter.sample()[0]) is not None or not seen:
            seen = max(seen, sample or 0)
            time.sleep(0.002)
        (outcome,) = driver.finish(10)
        assert outcome.seconds >= 2
        assert abs(seen - outcome.received_bytes) < 400_000, (seen, outcome)


def scenario_failures() -> None:
    """A taken port, a server that is gone, an unknown congestion control: each is named."""
    made = pairs(1)
    hosts = hosts_of(made)
    with SocketSampler(hosts) as sampler, tempfile.TemporaryDirectory() as raw:

        def driver(cc: str = "reno", cport: int = 10000) -> Iperf3Driver:
            flows = flows_of(made, cport, cc)
            return Iperf3Driver(flows, sampler, Path(raw), seconds=5)

        with driver() as first:
            first.start_servers()
            with driver() as second, pytest.raises(RunError, match="Address already in use"):
                second.start_servers()  # may see the first one's listener, and only later the failure
                second.start_clients()
                eventually(lambda: has_failed(second), "the second server ends")
                second.check()
        with driver("nonesuch", 10001) as third:
            third.start_servers()
            third.start_clients()
            eventually(lambda: has_failed(third), "the client's end is noticed")
            with pytest.raises(RunError, match=r"flow 0 \(c0 .*TCP_CONGESTION"):
                third.stop()
        with pytest.raises(HostUnfitError, match="nonesuch"):
            prefer_congestion_control(dict.fromkeys(hosts, "nonesuch"))


@pytest.mark.parametrize(
    "scenario",
    [
        scenario_reno_then_cubic,
        scenario_finish,
        scenario_mixed_transports,
        scenario_failures,
    ],
)
def test_driver(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))


def test_sixteen_connections_of_eight_subflows() -> None:
    """Retry once: in one of nine runs the kernel's count of one connection stayed off for 10 s."""
    try:
        sys.stdout.write(run_isolated(scenario_mptcp_sixteen))
    except AssertionError as first:
        sys.stdout.write(f"once more, after: {first}\n")
        sys.stdout.write(run_isolated(scenario_mptcp_sixteen))
