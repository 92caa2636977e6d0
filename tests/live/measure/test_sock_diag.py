"""INET_DIAG's counters of a transfer agree with what the application received."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from engines.emulation.kernel.mptcp_genl import IPPROTO_MPTCP
from engines.emulation.kernel.namespaces import HostRef, call_in_netns
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.path_manager import PathManager
from model.flows import AddressPair
from tests.support.two_hosts import Pair, eventually, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]

DPORT, CPORT = 5001, 10000


def open_socket(pid: int, proto: int) -> socket.socket:
    sock = call_in_netns(pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, proto))
    sock.settimeout(20)
    return sock


@contextmanager
def connected(pair: Pair, proto: int, server_proto: int | None = None) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        listener = stack.enter_context(
            open_socket(pair.server.pid, proto if server_proto is None else server_proto)
        )
        listener.bind((pair.server_ip, DPORT))
        listener.listen(1)
        client = stack.enter_context(open_socket(pair.client.pid, proto))
        client.bind((pair.client_ip, CPORT))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        client.connect((pair.server_ip, DPORT))
        client.send(b"x")
        server = stack.enter_context(listener.accept()[0])
        server.recv(1)
        yield [client, server]


def server_path(pair: Pair) -> AddressPair:
    return AddressPair(pair.server_ip, DPORT, pair.client_ip, CPORT)


def pump(sock: socket.socket, count: int) -> None:
    sock.sendall(bytes(count))


def drain(sock: socket.socket, count: int) -> None:
    while count > 0:
        count -= len(sock.recv(min(count, 1 << 16)))


def check_transfer(sampler: SocketSampler, pair: Pair, ends: list[socket.socket]) -> None:
    """Send 20 MB, which the application reads; then 64 kB, which it leaves in the receive queue."""
    meter = ReceiveMeter(sampler, [(pair.server, server_path(pair))])
    client, server = ends
    (before,) = meter.sample()
    assert before == 1, (before, sampler.mptcp_at(pair.server, server_path(pair)))
    size = 20_000_000
    sender = threading.Thread(target=pump, args=(client, size))
    sender.start()
    drain(server, size)
    sender.join()
    assert meter.sample() == [before + size]
    pump(client, 65536)
    eventually(lambda: meter.sample() == [before + size + 65536], "unread bytes count as received")


def scenario_tcp() -> None:
    (pair,) = pairs(1, rate_mbit=200)
    with SocketSampler([pair.client, pair.server]) as sampler, connected(pair, 0) as ends:
        check_transfer(sampler, pair, ends)
        (sender,) = sampler.tcp(pair.client)
        assert sender.cc == "cubic"
        assert sender.subflow is None
        assert sender.bytes_acked >= 20_000_000
        assert sender.srtt_us > 0
        assert sampler.mptcp(pair.client) == []


def scenario_mptcp() -> None:
    (pair,) = pairs(1, rate_mbit=200)
    hosts = [pair.client, pair.server]
    with (
        PathManager(hosts, 4, lambda _, dport: dport == DPORT) as manager,
        SocketSampler(hosts) as sampler,
        connected(pair, IPPROTO_MPTCP) as ends,
    ):
        assert manager.wait_all(1, 5)
        check_transfer(sampler, pair, ends)
        for host in hosts:
            (connection,) = sampler.mptcp(host)
            assert not connection.fallback
            assert connection.subflows in (4, None)
            subflows = sampler.tcp(host)  # after 20 MB the last join's last ACK has arrived
            assert {s.subflow.token for s in subflows if s.subflow} == {connection.token}
            assert len(subflows) == 4
        assert {s.cc for s in sampler.tcp(pair.client)} == {"cubic"}
        received = [s.bytes_received for s in sampler.tcp(pair.server)]
        assert sum(count > 1_000_000 for count in received) >= 2, received
        assert sum(received) >= 20_000_000


def scenario_fallback() -> None:
    (pair,) = pairs(1)
    hosts = [pair.client, pair.server]
    with (
        PathManager(hosts, 4, lambda _, dport: dport == DPORT) as manager,
        SocketSampler(hosts) as sampler,
        connected(pair, IPPROTO_MPTCP, server_proto=0) as ends,
    ):
        assert not manager.wait_all(1, 0.3)
        check_transfer(sampler, pair, ends)
        client_path = AddressPair(pair.client_ip, CPORT, pair.server_ip, DPORT)
        connection = sampler.mptcp_at(pair.client, client_path)
        assert connection is not None
        assert connection.fallback
        assert sampler.mptcp_at(pair.server, server_path(pair)) is None


def scenario_cost() -> None:
    """The reference workload's shape: 128 receivers with 8 subflows each, read once a second."""
    made = pairs(64)
    hosts = [host for pair in made for host in (pair.client, pair.server)]
    with ExitStack() as stack:
        manager = stack.enter_context(PathManager(hosts, 8, lambda _, dport: dport == DPORT))
        sampler = stack.enter_context(SocketSampler(hosts))
        for pair in made:
            stack.enter_context(connected(pair, IPPROTO_MPTCP))
        assert manager.wait_all(64, 10)
        meter = ReceiveMeter(sampler, [(p.server, server_path(p)) for p in made for _ in range(2)])
        found = meter.sample()
        assert found == [1] * 128, found
        print(f"meter, 128 flows: {_cpu_ms(meter.sample):.1f} ms CPU a sample")
        print(f"tcp dumps, 128 hosts: {_cpu_ms(partial(_dump, sampler.tcp, hosts)):.1f} ms CPU")
        print(f"mptcp dumps, 128 hosts: {_cpu_ms(partial(_dump, sampler.mptcp, hosts)):.1f} ms CPU")


def _dump(ask: Callable[[HostRef], object], hosts: list[HostRef]) -> None:
    for host in hosts:
        ask(host)


def _cpu_ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    for _ in range(5):
        work()
    return (time.process_time() - start) / 5 * 1000


@pytest.mark.parametrize("scenario", [scenario_tcp, scenario_mptcp, scenario_fallback, scenario_cost])
def test_sockets(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))
