"""The flow drivers on real hosts, native and iperf3: rates, silence, joins, sizes, failures."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from common.errors import DeadlineError, HostUnfitError, RunError
from engines.emulation.kernel.namespaces import HostRef, call_in_netns, set_sysctls
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.path_manager import PathManager, ndiffports
from engines.emulation.traffic.driver import is_data
from engines.emulation.traffic.iperf3 import Iperf3Traffic, prefer_congestion_control
from engines.emulation.traffic.native import NativeDriver
from model.flows import FIRST_CPORT, FIRST_PORT, STRIDE, PlannedFlow
from tests.support.machine_noise import exact
from tests.support.two_hosts import Pair, eventually, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.physics,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]

RATE_MBIT = 50
PAYLOAD = 1448 / 1514
DEADLINE_S = 10.0


def planned(made: Sequence[Pair]) -> list[PlannedFlow]:
    return [
        PlannedFlow(
            i, p.client.name, p.server.name, p.client_ip, p.server_ip, FIRST_PORT + i % 3, FIRST_CPORT + i
        )
        for i, p in enumerate(made)
    ]


def hosts_of(made: Sequence[Pair]) -> dict[str, HostRef]:
    return {host.name: host for pair in made for host in (pair.client, pair.server)}


@contextmanager
def connected(
    flows: Sequence[PlannedFlow], hosts: dict[str, HostRef], cc: str = "reno", mptcp: bool = False
) -> Iterator[NativeDriver]:
    with NativeDriver(speaking(flows, cc, mptcp), hosts) as driver:
        driver.open()
        driver.connect(DEADLINE_S)
        yield driver


def speaking(flows: Sequence[PlannedFlow], cc: str = "reno", mptcp: bool = False) -> list[PlannedFlow]:
    return [replace(flow, cc=cc, subflows=2 if mptcp else 1) for flow in flows]


def total(counts: Sequence[int | None]) -> int:
    assert None not in counts
    return sum(count or 0 for count in counts)


def scenario_tcp_at_the_links_rate() -> None:
    """The flow driver's counts, the kernel's, and the rate of the links agree; both ends have the cc."""
    made = pairs(2, RATE_MBIT)
    flows, hosts = planned(made), hosts_of(made)
    with SocketSampler(list(hosts.values())) as sampler, connected(flows, hosts, "cubic") as driver:
        meter = ReceiveMeter(sampler, [(hosts[f.dst], f.seen_by_receiver) for f in flows])
        time.sleep(0.1)
        assert meter.sample() == driver.received() == [0, 0]
        driver.release()
        time.sleep(0.5)
        start, before = time.monotonic(), driver.received()
        time.sleep(1.0)
        elapsed, after = time.monotonic() - start, driver.received()
        for first, last in zip(before, after, strict=True):
            mbps = ((last or 0) - (first or 0)) * 8e-6 / elapsed
            assert RATE_MBIT * PAYLOAD * 0.9 < mbps < RATE_MBIT * PAYLOAD * 1.05
        for flow in flows:
            for host, path in ((flow.src, flow.seen_by_sender), (flow.dst, flow.seen_by_receiver)):
                found = sampler.tcp_at(hosts[host], path)
                assert found is not None
                assert found.cc == "cubic"
        low, kernel, high = driver.received(), meter.sample(), driver.received()
        for least, counted, most in zip(low, kernel, high, strict=True):
            assert (least or 0) <= (counted or 0) <= (most or 0) + 300_000  # not yet read, at most
        driver.check()
        assert all(d.received_bytes > 5_000_000 and not d.error for d in driver.stop())


def scenario_the_size_of_writes() -> None:
    """Calls for 16 bytes carry a fraction of what calls for 128 kB do, and sizes come out to the byte."""
    made = pairs(1)
    flows, hosts = planned(made), hosts_of(made)
    carried: list[int] = []
    for write_bytes in (0, 16, 0, 16):
        ports = [replace(flow, cport=flow.cport + len(carried)) for flow in flows]
        with NativeDriver(ports, hosts, write_bytes=write_bytes) as driver:
            driver.open()
            driver.connect(DEADLINE_S)
            driver.release()
            time.sleep(0.4)
            carried.append(total(driver.received()))
            driver.check()
    assert min(carried) > 0
    assert max(carried[1], carried[3]) < min(carried[0], carried[2]) / 3
    sized = [replace(flow, size_bytes=1_000_003, cport=flow.cport + 9) for flow in flows]
    with NativeDriver(sized, hosts, write_bytes=4096) as driver:
        driver.open()
        driver.connect(DEADLINE_S)
        driver.release()
        eventually(lambda: driver.received() == [1_000_003], "all bytes of the flow")
        with exact():
            assert driver.stop()[0].received_bytes == 1_000_003


def scenario_mptcp_joins_while_silent() -> None:
    """All subflows of all connections are there before a byte of payload is."""
    subflows, made = 8, pairs(16, RATE_MBIT)
    flows, hosts = planned(made), hosts_of(made)
    refs = list(hosts.values())
    with (
        PathManager(refs, subflows, is_data) as manager,
        SocketSampler(refs) as sampler,
        connected(flows, hosts, mptcp=True) as driver,
    ):
        assert manager.wait_all(len(flows), DEADLINE_S), manager.reports()
        assert not [report.errors for report in manager.reports() if report.errors]
        meter = ReceiveMeter(sampler, [(hosts[f.dst], f.seen_by_receiver) for f in flows])
        for flow in flows:
            eventually(lambda: len(sampler.tcp(hosts[flow.dst])) == subflows, "the joins' last ACKs")  # noqa: B023
            with exact():
                assert {s.bytes_received for s in sampler.tcp(hosts[flow.dst])} == {0}
                assert {s.cc for s in sampler.tcp(hosts[flow.dst])} == {"reno"}
                assert {s.cc for s in sampler.tcp(hosts[flow.src])} == {"reno"}
        assert meter.sample() == driver.received() == [0] * len(flows)
        driver.release()
        time.sleep(1.0)
        start, before = time.monotonic(), total(driver.received())
        time.sleep(1.0)
        mbps = (total(driver.received()) - before) * 8e-6 / (time.monotonic() - start)
        assert 0.8 * RATE_MBIT * PAYLOAD * len(flows) < mbps < 1.05 * RATE_MBIT * PAYLOAD * len(flows)
        low, kernel, high = driver.received(), meter.sample(), driver.received()
        for least, counted, most in zip(low, kernel, high, strict=True):
            assert (least or 0) <= (counted or 0) <= (most or 0) + 4_000_000
        used = [s.bytes_received for flow in flows for s in sampler.tcp(hosts[flow.dst])]
        assert len(used) == subflows * len(flows)
        assert min(used) > 0, "every subflow carries data"
        assert all(d.received_bytes > 1_000_000 and not d.error for d in driver.stop())


def scenario_mixed_transports() -> None:
    """An MPTCP flow and a plain one side by side, each with its own congestion control."""
    made = pairs(2, RATE_MBIT)
    hosts = hosts_of(made)
    mptcp, plain = (
        replace(flow, cc=cc, subflows=n)
        for flow, cc, n in zip(planned(made), ("cubic", "reno"), (4, 1), strict=True)
    )
    with (
        PathManager(list(hosts.values()), 4, is_data, ndiffports(4, STRIDE)) as manager,
        SocketTable(list(hosts.values()), [mptcp, plain]) as table,
        NativeDriver([mptcp, plain], hosts) as driver,
    ):
        driver.open()
        driver.connect(DEADLINE_S)
        assert manager.wait_all(1, DEADLINE_S), manager.reports()
        driver.release()
        eventually(lambda: all((count or 0) > 1_000_000 for count in driver.received()), "both deliver")
        found = table.read()
        with exact():
            assert found.counts(2).tolist() == [4, 1]
            assert found.mptcp_counts(2).tolist() == [4, 0]
            assert [found.cc_of(flow) for flow in (0, 1)] == ["cubic", "reno"]
            assert [len(report.ever) for report in manager.reports()] == [4]
        driver.stop()


def scenario_sizes_and_starts() -> None:
    """Sized flows end by themselves, with exactly their bytes, each from its own start on."""
    made = pairs(6, RATE_MBIT)
    hosts = hosts_of(made)
    sizes = [1, 100_000, 1_000_000, 2_000_000, 0, 1_500_000]
    starts = [0.0, 0.5, 0.25, 0.0, 0.3, 0.6]
    flows = [
        replace(flow, size_bytes=size, start_s=start)
        for flow, size, start in zip(planned(made), sizes, starts, strict=True)
    ]
    for mptcp in (False, True):
        with connected(flows, hosts, mptcp=mptcp) as driver:
            time.sleep(0.1)
            assert driver.received() == [0] * len(flows)
            driver.release()
            sized = [i for i, size in enumerate(sizes) if size]
            eventually(lambda: all(driver.completed_s()[i] >= 0 for i in sized), "sized flows end")  # noqa: B023
            took = driver.completed_s()
            assert took[4] != took[4], "an unlimited flow has no completion time"
            for i in sized:
                assert driver.received()[i] == sizes[i]
                # The queue of the link takes 16 kB at once (tbf's burst); nothing is faster than the link.
                assert took[i] >= max(0, sizes[i] - 16_000) * 8e-6 / RATE_MBIT
                assert took[i] < 3 * (0.1 + sizes[i] * 8e-6 / RATE_MBIT)
            began = driver.readings()["started_s"]
            assert all(start <= at < start + 1.0 for start, at in zip(starts, began, strict=True)), began
            driver.check()
            delivered = driver.stop()
            with exact():
                assert [d.error for d in delivered] == [""] * len(flows)
                assert [d.received_bytes for d, size in zip(delivered, sizes, strict=True) if size] == [
                    s for s in sizes if s
                ]


def scenario_one_after_the_other() -> None:
    """A flow that waits for another starts its gap after the other's last byte, and not before."""
    made = pairs(3, RATE_MBIT)
    first, second, third = (replace(flow, size_bytes=500_000) for flow in planned(made))
    flows = [replace(first, start_s=0.1), replace(second, after=0, start_s=0.2), replace(third, after=1)]
    with connected(flows, hosts_of(made)) as driver:
        driver.release()
        eventually(lambda: driver.completed_s()[2] >= 0, "the last flow ends")
        began, took = driver.started_s(), driver.completed_s()
        for gap, before, after in ((0.2, 0, 1), (0.0, 1, 2)):
            assert began[before] + took[before] + gap <= began[after] + 1e-6
            assert began[after] < began[before] + took[before] + gap + 1.0
        with exact():
            assert [d.received_bytes for d in driver.stop()] == [500_000] * 3


def scenario_retransmissions_of_completed_flows() -> None:
    """What a flow retransmitted is known after its sockets are gone: the receiver's interface is down for a
    while in the middle of the flow."""
    made = pairs(1, RATE_MBIT)
    flows, hosts = [replace(flow, size_bytes=3_000_000) for flow in planned(made)], hosts_of(made)
    for mptcp in (False, True):
        with (
            connected(flows, hosts, mptcp=mptcp) as driver,
            SocketTable(list(hosts.values()), speaking(flows, mptcp=mptcp)) as table,
        ):
            assert driver.retransmitted() == [None]
            driver.release()
            eventually(lambda: total(driver.received()) > 500_000, "the flow is on its way")
            _ip_link(hosts[flows[0].dst], "down")
            eventually(lambda: table.read().retransmits.sum() > 0, "the sender tries again")
            seen = int(table.read().retransmits.sum())
            _ip_link(hosts[flows[0].dst], "up")
            eventually(lambda: driver.retransmitted() != [None], "the flow ends")
            (counted,) = driver.retransmitted()
            assert counted is not None
            assert seen <= counted < 3_000_000 / 1000
            driver.stop()


def scenario_failures() -> None:
    """Refused, unreachable, taken, unknown, dead: each failure is named."""
    made = pairs(3)
    flows, hosts = planned(made), hosts_of(made)
    elsewhere = {**hosts, flows[1].dst: hosts[flows[0].dst]}
    with NativeDriver(flows, elsewhere) as driver:
        driver.open()
        with pytest.raises(
            RunError, match=r"flow 1 \(c1 .* cannot be connected: connecting: Connection refused"
        ):
            driver.connect(DEADLINE_S)
    unknown = NativeDriver(speaking(flows, "nonesuch"), hosts)
    with pytest.raises(HostUnfitError, match="modprobe -a tcp_nonesuch"):
        unknown.open()
    second = NativeDriver(flows, hosts)
    with connected(flows, hosts), pytest.raises(RunError, match=r"binding .*: Address already in use"):
        second.open()
    _ip_link(hosts[flows[2].dst], "down")
    for mptcp in (False, True):
        with NativeDriver(speaking(flows, mptcp=mptcp), hosts) as driver:
            driver.open()
            start = time.monotonic()
            with pytest.raises(DeadlineError, match=r"1 of 3 flows .* flow 2 \(c2 "):
                driver.connect(0.5)
            assert time.monotonic() - start < DEADLINE_S


def scenario_death() -> None:
    """A flow whose link is cut while it runs dies when its kernel gives up; the others go on."""
    made = pairs(2, RATE_MBIT)
    flows, hosts = planned(made), hosts_of(made)
    set_sysctls(hosts.values(), {"net.ipv4.tcp_retries2": "3"})
    with connected(flows, hosts) as driver:
        driver.release()
        time.sleep(0.3)
        driver.check()
        _ip_link(hosts[flows[1].dst], "down")
        eventually(lambda: None in driver.received(), "the cut flow is found dead")
        assert driver.received()[0] is not None
        with pytest.raises(RunError, match=r"flow 1 \(c1 .* died: sending: (Connection timed|No route)"):
            driver.check()
        before = driver.received()[0] or 0
        eventually(lambda: (driver.received()[0] or 0) > before, "the other flow goes on")
        first, second = driver.stop()
        assert first.received_bytes > before
        assert not first.error
        assert second.received_bytes > 0
        assert second.error


def scenario_strangers() -> None:
    """A connection that was not planned is closed and counted, and is no flow."""
    made = pairs(1)
    (flow,), hosts = planned(made), hosts_of(made)
    with connected([flow], hosts) as driver:
        ask = f"import socket; s=socket.create_connection(('{flow.dst_ip}', {flow.port})); print(s.recv(1))"
        argv = [sys.executable, "-c", ask]
        run = lambda: subprocess.run(argv, capture_output=True, timeout=10, check=True).stdout  # noqa: E731
        assert call_in_netns(hosts[flow.src].pid, run) == b"b''\n"
        with exact():
            assert driver.readings()["strangers"] == 1
        driver.check()


def scenario_thousands() -> None:
    """2000 flows between 20 pairs open, connect, run and stop in seconds, and leave no descriptor."""
    made = pairs(20)
    hosts = hosts_of(made)
    flows = [
        PlannedFlow(
            i * 100 + n,
            p.client.name,
            p.server.name,
            p.client_ip,
            p.server_ip,
            FIRST_PORT + n,
            FIRST_CPORT + n,
        )
        for i, p in enumerate(made)
        for n in range(100)
    ]
    most = max(open_fds() + 64, 2048)
    for hard in (20_000, most):  # the ports are free at once; and many tables, where one cannot hold them all
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        fds = open_fds()
        start = time.monotonic()
        up_s = up_and_down(flows, hosts)
        took_s = time.monotonic() - start
        print(f"2000 flows up in {up_s:.2f} s, up, busy, and down in {took_s:.2f} s")
        with exact():
            assert open_fds() == fds
        assert took_s < 2 * DEADLINE_S


def up_and_down(flows: Sequence[PlannedFlow], hosts: dict[str, HostRef]) -> float:
    """Run until every flow has delivered something; return the seconds until all were connected."""
    start = time.monotonic()
    with connected(flows, hosts) as driver:
        up_s = time.monotonic() - start
        assert open_fds("[0-9]*") >= 3 * len(flows)
        assert open_fds() < 100, "the process's own table stays small"
        assert max(driver.up_s()) < up_s
        driver.release()
        eventually(lambda: all(driver.received()), "every flow delivers")
        assert not [d for d in driver.stop() if d.error]
        return up_s


def open_fds(thread: str = str(os.getpid())) -> int:
    """Count the descriptors in this thread's table, or in those of all threads for "[0-9]*"."""
    return sum(1 for _ in Path("/proc/self/task").glob(f"{thread}/fd/*"))


def _ip_link(host: HostRef, state: str) -> None:
    argv = ["ip", "link", "set", "eth0", state]
    call_in_netns(host.pid, lambda: subprocess.run(argv, check=True))


@pytest.mark.parametrize(
    "scenario",
    [
        scenario_tcp_at_the_links_rate,
        scenario_the_size_of_writes,
        scenario_mptcp_joins_while_silent,
        scenario_mixed_transports,
        scenario_sizes_and_starts,
        scenario_one_after_the_other,
        scenario_retransmissions_of_completed_flows,
        scenario_failures,
        scenario_death,
        scenario_strangers,
        scenario_thousands,
    ],
)
def test_native_driver(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))


CPORT, PORT = 10000, 5001


def iperf3_flows(
    made: Sequence[Pair], cc: str = "reno", subflows: int = 1, cport: int = CPORT
) -> list[PlannedFlow]:
    ends = [(p.client.name, p.server.name, p.client_ip, p.server_ip, PORT, cport) for p in made]
    return [PlannedFlow(i, *each, cc=cc, subflows=subflows) for i, each in enumerate(ends)]


def is_iperf3(sport: int, dport: int) -> bool:
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


def iperf3_mixed_transports() -> None:
    """An MPTCP flow and a plain one side by side, each with its own congestion control, fill their links."""
    made = pairs(2, RATE_MBIT)
    hosts = hosts_of(made)
    mptcp, plain = iperf3_flows(made, cc="cubic", subflows=4)[0], iperf3_flows(made)[1]
    with (
        PathManager(list(hosts.values()), 4, is_iperf3) as manager,
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


def iperf3_mptcp_sixteen() -> None:
    """16 flows with 8 subflows each; control connections stay alone."""
    made = pairs(16)
    flows, hosts = iperf3_flows(made, subflows=8), hosts_of(made)
    with (
        PathManager(list(hosts.values()), 8, is_iperf3) as manager,
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


def iperf3_failures() -> None:
    """A taken port, a server that is gone, an unknown congestion control: each is named."""
    made = pairs(1)
    hosts = hosts_of(made)

    with tempfile.TemporaryDirectory() as raw:

        def traffic(cc: str = "reno", cport: int = CPORT) -> Iperf3Traffic:
            return Iperf3Traffic(iperf3_flows(made, cc, cport=cport), hosts, Path(raw), seconds=5)

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


@pytest.mark.parametrize("scenario", [iperf3_mixed_transports, iperf3_failures])
def test_iperf3_driver(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))


def test_sixteen_connections_of_eight_subflows() -> None:
    """Retry once: in one of nine runs the kernel's count of one connection stayed off for 10 s."""
    try:
        sys.stdout.write(run_isolated(iperf3_mptcp_sixteen))
    except AssertionError as first:
        sys.stdout.write(f"once more, after: {first}\n")
        sys.stdout.write(run_isolated(iperf3_mptcp_sixteen))
