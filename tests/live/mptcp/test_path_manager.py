"""The path managers, in user space and in the kernel, on real connections: counts, ports, filter, failure."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from common.errors import UsageError
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.mptcp_genl import IPPROTO_MPTCP, MptcpEvent
from engines.emulation.path_manager import PathManager, signal_path_manager
from model.flows import AddressPair
from tests.support.two_hosts import Pair, eventually, open_socket, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]

DPORT, CPORT = 5001, 10000


@contextmanager
def listening(pair: Pair) -> Iterator[socket.socket]:
    with open_socket(pair.server, IPPROTO_MPTCP) as listener:
        listener.bind((pair.server_ip, DPORT))
        listener.listen(8)
        yield listener


@contextmanager
def conversation(
    pair: Pair, listener: socket.socket, cport: int = CPORT
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Connect, and send one byte: only then is an MPTCP connection fully established. Yield both ends."""
    with open_socket(pair.client, IPPROTO_MPTCP) as client:
        client.bind((pair.client_ip, cport))
        client.connect((pair.server_ip, DPORT))
        client.send(b"x")
        server, _ = listener.accept()
        with server:
            server.recv(1)
            yield client, server


def data_ports(sport: int, dport: int) -> bool:
    return dport == DPORT and sport < 20000


def scenario_counts() -> None:
    for subflows, pair in zip((1, 2, 8, 32), pairs(4), strict=True):
        with (
            PathManager([pair.client, pair.server], subflows, data_ports) as manager,
            listening(pair) as listener,
            conversation(pair, listener),
        ):
            assert manager.wait_all(1, 5), manager.reports()
            (report,) = manager.reports()
            expected = [CPORT + 1000 * i for i in range(subflows)]
            assert sorted(path.lport for path in report.ever) == expected
            assert len(report.open) == report.requested == subflows
            assert report.created == subflows - 1
            assert not report.errors
            assert 0 <= report.up_s < 1
            print(subflows, f"up after {report.up_s * 1000:.1f} ms")


def scenario_late() -> None:
    """Further subflows wait until they may join, and a connection that has ended gets none."""
    pair, other = pairs(2)
    hosts = [host for each in (pair, other) for host in (each.client, each.server)]
    with PathManager(hosts, 4, data_ports, late=True) as manager, listening(pair) as listener:
        with listening(other) as there, conversation(other, there):
            assert manager.wait_all(1, 5)
        with conversation(pair, listener):
            assert manager.wait_all(2, 5)
            assert [len(report.open) for report in manager.reports()] == [1, 1]
            now = time.monotonic()
            manager.join_at({(each.client_ip, CPORT): now for each in (pair, other)})
            eventually(lambda: len(manager.reports()[1].open) == 4, "all have joined")
            assert manager.reports()[0].created == 0


def scenario_close() -> None:
    """A subflow is opened, closed and opened again from another port, while both ends exchange data."""
    (pair,) = pairs(1)
    client = (pair.client_ip, CPORT)
    with (
        PathManager([pair.client, pair.server], 3, data_ports, late=True) as manager,
        listening(pair) as listener,
        conversation(pair, listener) as (sender, receiver),
    ):
        assert manager.wait_all(1, 5)
        assert not manager.close_subflow(client, 1), "it is not open"
        for lport in (CPORT + 1000, CPORT + 1017, CPORT + 1034):
            assert manager.open_subflow(client, 1, lport)
            assert not manager.open_subflow(client, 1), "it is open already"
            eventually(lambda: len(manager.reports()[0].open) == 2, "it has joined")
            assert lport in [path.lport for path in manager.reports()[0].ever]
            sending = threading.Thread(target=sender.sendall, args=(bytes(1 << 20),))
            sending.start()
            left = (1 << 20) - len(receiver.recv(65536))
            assert manager.close_subflow(client, 1)
            while left:
                left -= len(receiver.recv(min(left, 65536)))
            sending.join()
            eventually(lambda: len(manager.reports()[0].open) == 1, "it has left")
        assert manager.open_subflow(client, 2)
        assert manager.close_subflow(client, 2), "before it has joined, or just after"
        eventually(lambda: has_one_subflow(manager, pair), "the first subflow is alone, and none connects")


def has_one_subflow(manager: PathManager, pair: Pair) -> bool:
    """Return whether manager and kernel agree on one subflow, and none is being opened."""
    (report,) = manager.reports()
    assert report.errors == []
    states = sock_states(pair.client.pid)
    counts = (len(report.open), report.requested, states.count("ESTAB"), states.count("SYN-SENT"))
    return counts == (1, 1, 1, 0)


def sock_states(pid: int) -> list[str]:
    """Return the states of the host's TCP sockets to the listener."""
    argv = ["nsenter", "-t", str(pid), "-n", "ss", "-Htan", f"dport = :{DPORT}"]
    lines = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split()[0] for line in lines]


def scenario_filter() -> None:
    (pair,) = pairs(1)
    with (
        PathManager([pair.client, pair.server], 4, data_ports) as manager,
        listening(pair) as listener,
        conversation(pair, listener, cport=30000),
        conversation(pair, listener),
    ):
        assert manager.wait_all(1, 5)
        assert not manager.wait_all(2, 0.3)
        (report,) = manager.reports()
        assert report.path == AddressPair(pair.client_ip, CPORT, pair.server_ip, DPORT)


def scenario_retry() -> None:
    """A taken local port and a remote port without a listener: both errors are noted, a retry mends one."""
    (pair,) = pairs(1)

    def policy(event: MptcpEvent) -> list[AddressPair]:
        path = event.path
        return [
            AddressPair(path.laddr, 11000, path.raddr, path.rport),
            AddressPair(path.laddr, 12000, path.raddr, 5999),
        ]

    with (
        open_socket(pair.client) as squatter,
        PathManager([pair.client, pair.server], 3, data_ports, policy, retry_s=0.5) as manager,
        listening(pair) as listener,
    ):
        squatter.bind((pair.client_ip, 11000))
        with conversation(pair, listener):
            assert not manager.wait_all(1, 1.5)
            (report,) = manager.reports()
            assert len(report.open) == 2
            assert any("EADDRINUSE" in error for error in report.errors), report.errors
            assert any("Connection refused" in error for error in report.errors), report.errors


def scenario_end() -> None:
    (pair,) = pairs(1)
    with PathManager([pair.client, pair.server], 4, data_ports) as manager, listening(pair) as listener:
        with conversation(pair, listener):
            assert manager.wait_all(1, 5)
        eventually(lambda: manager.reports()[0].ended, "the connection is reported as ended")
        assert len(manager.reports()[0].open) == 4


def scenario_sixteen_pairs() -> None:
    made = pairs(16)
    hosts = [host for pair in made for host in (pair.client, pair.server)]
    with ExitStack() as stack:
        manager = stack.enter_context(PathManager(hosts, 8, data_ports))
        listeners = [stack.enter_context(listening(pair)) for pair in made]
        start = time.monotonic()
        talks = [conversation(p, at) for p, at in zip(made, listeners, strict=True)]
        threads = [threading.Thread(target=stack.enter_context, args=(talk,)) for talk in talks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert manager.wait_all(16, 5), manager.reports()
        assert all(len(r.open) == 8 and not r.errors for r in manager.reports())
        print(f"16 x 8 subflows {1000 * (time.monotonic() - start):.0f} ms after the first connect")


def scenario_signal_endpoints() -> None:
    """The in-kernel path manager gives up to 9 subflows over one address pair."""
    for subflows, pair in zip((1, 2, 8, 9), pairs(4), strict=True):
        hosts = [pair.client, pair.server]
        with (
            signal_path_manager(hosts, subflows, data_ports, {pair.server: pair.server_ip}) as manager,
            listening(pair) as listener,
            conversation(pair, listener),
        ):
            complete = manager.wait_all(1, 5)
            (report,) = manager.reports()
            assert complete, report
            assert {(path.laddr, path.raddr) for path in report.ever} == {(pair.client_ip, pair.server_ip)}


def scenario_both_ways() -> None:
    """Hosts that are client and server at once, as in a permutation."""
    made = pairs(4)
    servers = {pair.client: pair.client_ip for pair in made} | {pair.server: pair.server_ip for pair in made}
    with (
        signal_path_manager(list(servers), 8, data_ports, servers) as manager,
        ExitStack() as stack,
    ):
        for pair in made:
            back = Pair(pair.server, pair.client, pair.server_ip, pair.client_ip)
            for each in (pair, back):
                stack.enter_context(conversation(each, stack.enter_context(listening(each))))
        eventually(lambda: len(manager.reports()) == 8, "all connections are seen")


@pytest.mark.parametrize(
    "scenario",
    [
        scenario_counts,
        scenario_late,
        scenario_close,
        scenario_filter,
        scenario_retry,
        scenario_end,
        scenario_sixteen_pairs,
        scenario_signal_endpoints,
        scenario_both_ways,
    ],
)
def test_path_manager(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))


def test_this_kernel_is_classified() -> None:
    found = mptcp_genl.support()
    assert (found.advice == "") == (found.level is mptcp_genl.PathManagement.USERSPACE)


def test_ten_subflows_are_refused() -> None:
    with pytest.raises(UsageError, match="1 to 9"):
        signal_path_manager([], 10, lambda _s, _d: True, {})
