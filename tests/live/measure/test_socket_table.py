"""What the kernel says of sockets (INET_DIAG): counters agree with what the application received, and one
reading of all senders with readings of one socket after the other."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from common.errors import RunError
from engines.emulation.kernel.mptcp_genl import IPPROTO_MPTCP
from engines.emulation.kernel.namespaces import HostRef, call_in_netns, sysctl_path
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler, TcpSocket
from engines.emulation.measure.socket_table import SocketReadings, SocketTable
from engines.emulation.path_manager import PathManager, ndiffports, signal_path_manager
from engines.emulation.traffic.driver import is_data
from model.flows import FIRST_CPORT, FIRST_PORT, STRIDE, AddressPair, PlannedFlow
from tests.support.two_hosts import Pair, eventually, open_socket, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]

DEADLINE_S = 20.0
CC = "cubic"


def hosts_of(made: list[Pair]) -> list[HostRef]:
    return [host for pair in made for host in (pair.client, pair.server)]


def flows_of(made: list[Pair], each: int = 1) -> list[PlannedFlow]:
    ends = [(i, n, pair) for i, pair in enumerate(made) for n in range(each)]
    return [
        PlannedFlow(
            i * each + n,
            pair.client.name,
            pair.server.name,
            pair.client_ip,
            pair.server_ip,
            FIRST_PORT + n,
            FIRST_CPORT + n,
        )
        for i, n, pair in ends
    ]


@contextmanager
def connected(
    pair: Pair, flow: PlannedFlow, proto: int, server_proto: int | None = None
) -> Iterator[tuple[socket.socket, socket.socket]]:
    with ExitStack() as stack:
        theirs = proto if server_proto is None else server_proto
        listener = stack.enter_context(open_socket(pair.server, theirs))
        listener.bind((flow.dst_ip, flow.port))
        listener.listen(1)
        client = stack.enter_context(open_socket(pair.client, proto))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CC.encode())
        client.bind((flow.src_ip, flow.cport))
        client.connect((flow.dst_ip, flow.port))
        client.send(b"x")
        server = stack.enter_context(listener.accept()[0])
        server.recv(1)
        yield client, server


def transfer(
    ends: tuple[socket.socket, socket.socket], size: int, begun: threading.Event | None = None
) -> None:
    """Transfer `size` bytes, all of which are acknowledged in the end. Set `begun` after the first tenth."""
    client, server = ends
    sender = threading.Thread(target=client.sendall, args=(bytes(size),))
    sender.start()
    left = size
    while left > 0:
        left -= len(server.recv(1 << 16))
        if begun is not None and left <= 0.9 * size:
            begun.set()
    sender.join()


@contextmanager
def cut_for(seconds: float, host: HostRef) -> Iterator[threading.Event]:
    """Cut the host's link when the event is set, and bring it back; the body must last longer than that."""
    begun = threading.Event()

    def set_link(state: str) -> None:
        call_in_netns(host.pid, lambda: subprocess.run(["ip", "link", "set", "eth0", state], check=True))

    def cut() -> None:
        if not begun.wait(DEADLINE_S):
            return  # the link stays up, and the test finds no retransmission
        set_link("down")
        time.sleep(seconds)
        set_link("up")

    thread = threading.Thread(target=cut)
    thread.start()
    yield begun
    thread.join()


def agree(seen: SocketReadings, i: int, sock: TcpSocket) -> bool:
    """Return whether entry i of the table is this socket, with the same numbers."""
    ours = AddressPair(*_address(seen.laddr[i], seen.lport[i]), *_address(seen.raddr[i], seen.rport[i]))
    return ours == sock.path and (
        int(seen.cwnd_pkts[i]),
        int(seen.srtt_us[i]),
        int(seen.min_rtt_us[i]),
        int(seen.retransmits[i]),
        int(seen.bytes_acked[i]),
        seen.cc_names[seen.cc[i]],
        bool(seen.mptcp[i]),
    ) == (
        sock.snd_cwnd,
        sock.srtt_us,
        sock.min_rtt_us,
        sock.total_retrans,
        sock.bytes_acked,
        sock.cc,
        sock.subflow is not None,
    )


def _address(address: int, port: int) -> tuple[str, int]:
    return str(ipaddress.IPv4Address(int(address))), int(port)


def check_transfer(
    sampler: SocketSampler, host: HostRef, flow: PlannedFlow, ends: tuple[socket.socket, socket.socket]
) -> None:
    """Send 20 MB, which the application reads; then 64 kB, which it leaves in the receive queue."""
    meter = ReceiveMeter(sampler, [(host, flow.seen_by_receiver)])
    (before,) = meter.sample()
    assert before == 1, (before, sampler.tcp_at(host, flow.seen_by_receiver))
    size = 20_000_000
    transfer(ends, size)
    assert meter.sample() == [before + size]
    ends[0].sendall(bytes(65536))
    eventually(lambda: meter.sample() == [before + size + 65536], "unread bytes count as received")


def scenario_tcp() -> None:
    """Two flows of one host, one on a link that fails for a while, and connections that are not planned."""
    (pair,) = pairs(1, rate_mbit=100)
    hosts, flows = hosts_of([pair]), flows_of([pair], each=2)
    other = PlannedFlow(9, pair.client.name, pair.server.name, pair.client_ip, pair.server_ip, 80, 1200)
    control = PlannedFlow(9, pair.client.name, pair.server.name, pair.client_ip, pair.server_ip, 5203, 40000)
    with SocketSampler(hosts) as sampler, SocketTable(hosts, flows) as table, ExitStack() as stack:
        assert len(table.read()) == 0
        ends = [stack.enter_context(connected(pair, flow, 0)) for flow in (*flows, other, control)]
        before, start_s = table.read(), time.monotonic()
        assert before.counts(2).tolist() == [1, 1]
        with cut_for(0.5, pair.server) as begun:
            transfer(ends[1], 20_000_000, begun)
        check_transfer(sampler, pair.server, flows[0], ends[0])
        transfer(ends[2], 1_000_000)
        seen = table.read()
        assert start_s < seen.t_s < time.monotonic()
        assert seen.flow.tolist() == [0, 1]
        assert seen.subflow.tolist() == [0, 0]
        for i, flow in enumerate(flows):
            sock = sampler.tcp_at(pair.client, flow.seen_by_sender)
            assert sock is not None
            assert sock.cc == CC and sock.subflow is None and sock.srtt_us > 0
            assert agree(seen, i, sock)
        assert seen.bytes_acked.min() > 20_000_000
        retransmitted = seen.retransmits_since(before, 2)
        assert retransmitted[1] > 0, "what was under way at the cut is lost"
        assert retransmitted.tolist() == seen.retransmits.tolist()
        assert seen.mptcp_counts(2).tolist() == [0, 0]
        assert seen.cc_of(0) == CC
        assert sampler.mptcp(pair.client) == []
    with pytest.raises(RunError, match="closed"):
        table.read()


def scenario_mptcp() -> None:
    """Four subflows, one from another port than planned, numbered by their ports."""
    (pair,) = pairs(1, rate_mbit=100)
    hosts, (flow,) = hosts_of([pair]), flows_of([pair])
    with (
        open_socket(pair.client) as squatter,
        PathManager(hosts, 4, is_data, ndiffports(4, STRIDE)) as manager,
        SocketSampler(hosts) as sampler,
        SocketTable(hosts, [flow]) as table,
    ):
        squatter.bind((pair.client_ip, FIRST_CPORT + 2 * STRIDE))
        with connected(pair, flow, IPPROTO_MPTCP) as ends:
            assert manager.wait_all(1, 5)
            check_transfer(sampler, pair.server, flow, ends)
            eventually(lambda: not int(table.read().unacked_pkts.sum()), "all is acknowledged")
            seen = table.read()
            assert seen.subflow.tolist() == [0, 1, 2, 3]
            assert set(seen.flow.tolist()) == {0}
            planned = [FIRST_CPORT + i * STRIDE for i in range(4)]
            assert [port for port in seen.lport.tolist() if port in planned] == planned[:2] + planned[3:]
            assert seen.mptcp.all()
            by_port = {sock.path.lport: sock for sock in sampler.tcp(pair.client)}
            for i, port in enumerate(seen.lport.tolist()):
                assert agree(seen, i, by_port[port])
            assert int(seen.bytes_acked.sum()) >= 20_000_000
            for host in hosts:
                (connection,) = sampler.mptcp(host)
                assert not connection.fallback
                assert connection.subflows in (4, None)
                subflows = sampler.tcp(host)  # after 20 MB the last join's last ACK has arrived
                assert {s.subflow.token for s in subflows if s.subflow} == {connection.token}
                assert len(subflows) == 4
            assert {s.cc for s in sampler.tcp(pair.client)} == {CC}
            received = [s.bytes_received for s in sampler.tcp(pair.server)]
            assert sum(count > 1_000_000 for count in received) >= 2, received
            assert sum(received) >= 20_000_000


def scenario_ports_of_the_kernels_choice() -> None:
    (pair,) = pairs(1)
    hosts, (flow,) = hosts_of([pair]), flows_of([pair])
    with (
        signal_path_manager(hosts, 4, is_data, {pair.server: pair.server_ip}) as manager,
        SocketTable(hosts, [flow], fixed_ports=False) as table,
        connected(pair, flow, IPPROTO_MPTCP) as ends,
    ):
        assert manager.wait_all(1, 5)
        transfer(ends, 1_000_000)
        seen = table.read()
        assert seen.subflow.tolist() == [0, 1, 2, 3]
        assert seen.lport[0] == FIRST_CPORT
        assert seen.rport.tolist() == [FIRST_PORT, 9001, 9002, 9003]
        assert table.read().lport.tolist() == seen.lport.tolist()


def scenario_fallback() -> None:
    """A server without MPTCP: the flow is found, as plain TCP."""
    (pair,) = pairs(1)
    hosts, (flow,) = hosts_of([pair]), flows_of([pair])
    with (
        PathManager(hosts, 4, is_data) as manager,
        SocketSampler(hosts) as sampler,
        SocketTable(hosts, [flow]) as table,
        connected(pair, flow, IPPROTO_MPTCP, server_proto=0) as ends,
    ):
        assert not manager.wait_all(1, 0.3) and manager.reports() == ()
        check_transfer(sampler, pair.server, flow, ends)
        ours = sampler.tcp_at(pair.client, flow.seen_by_sender)
        assert ours is not None and ours.subflow is not None
        connection = sampler.mptcp_token(pair.client, ours.subflow.token)
        assert connection is not None
        assert connection.fallback
        theirs = sampler.tcp_at(pair.server, flow.seen_by_receiver)
        assert theirs is not None and theirs.subflow is None
        seen = table.read()
        assert seen.counts(1).tolist() == [1]
        assert seen.mptcp_counts(1).tolist() == [0]


def scenario_many() -> None:
    """The reference workload's shape, 128 flows of 8 subflows: all found."""
    small_tables = sysctl_path("net.ipv4.tcp_child_ehash_entries")  # as a point has them
    if small_tables.exists():
        small_tables.write_text("1024")
    made = pairs(64)
    hosts, flows = hosts_of(made), flows_of(made, each=2)
    receivers = [(made[flow.flow // 2].server, flow.seen_by_receiver) for flow in flows]
    with ExitStack() as stack:
        manager = stack.enter_context(PathManager(hosts, 8, is_data, ndiffports(8, STRIDE)))
        table = stack.enter_context(SocketTable(hosts, flows))
        meter = ReceiveMeter(stack.enter_context(SocketSampler(hosts)), receivers)
        for flow in flows:
            stack.enter_context(connected(made[flow.flow // 2], flow, IPPROTO_MPTCP))
        assert manager.wait_all(128, 15)
        # A join's token is there when its last ACK was sent, a subflow's when its data was acknowledged.
        eventually(lambda: table.read().counts(128).tolist() == [8] * 128, "all subflows are found")
        seen = table.read()
        assert seen.flow.tolist() == [flow for flow in range(128) for _ in range(8)]
        assert seen.subflow.tolist() == list(range(8)) * 128
        assert meter.sample() == [1] * 128


def scenario_a_refusal_names_the_host() -> None:
    (pair,) = pairs(1)
    with pytest.raises(RunError, match="the host with pid 999999 may have ended"):
        SocketTable([HostRef(pair.client.name, 999999)], flows_of([pair]))


@pytest.mark.parametrize(
    "scenario",
    [
        scenario_tcp,
        scenario_mptcp,
        scenario_ports_of_the_kernels_choice,
        scenario_fallback,
        scenario_many,
        scenario_a_refusal_names_the_host,
    ],
)
def test_sockets(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))
