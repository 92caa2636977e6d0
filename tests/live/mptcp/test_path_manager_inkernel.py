"""The in-kernel path manager's signal endpoints give up to 9 subflows over one address pair."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from common.errors import UsageError
from engines.emulation.kernel.mptcp_genl import IPPROTO_MPTCP
from engines.emulation.kernel.namespaces import call_in_netns
from engines.emulation.path_manager import SignalPathManager
from tests.support.two_hosts import Pair, pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]


def open_socket(pid: int) -> socket.socket:
    sock = call_in_netns(pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP))
    sock.settimeout(20)
    return sock


def connect(stack: ExitStack, pair: Pair, backwards: bool = False) -> None:
    client_ip, server_ip = pair.client_ip, pair.server_ip
    client_pid, server_pid = pair.client.pid, pair.server.pid
    if backwards:
        client_ip, server_ip = server_ip, client_ip
        client_pid, server_pid = server_pid, client_pid
    listener = stack.enter_context(open_socket(server_pid))
    listener.bind((server_ip, 5001))
    listener.listen(1)
    client = stack.enter_context(open_socket(client_pid))
    client.bind((client_ip, 10000))
    client.connect((server_ip, 5001))
    client.send(b"x")
    stack.enter_context(listener.accept()[0])


def scenario_one_way() -> None:
    for subflows, pair in zip((1, 2, 8, 9), pairs(4), strict=True):
        hosts = [pair.client, pair.server]
        with (
            SignalPathManager(
                hosts, subflows, lambda _, d: d == 5001, {pair.server: pair.server_ip}
            ) as manager,
            ExitStack() as stack,
        ):
            connect(stack, pair)
            complete = manager.wait_all(1, 5)
            (report,) = manager.reports()
            print(subflows, report.established, f"up after {report.up_s * 1000:.1f} ms", report.errors)
            assert complete, report
            assert {(s.path.laddr, s.path.raddr) for s in report.subflows} == {
                (pair.client_ip, pair.server_ip)
            }


def scenario_both_ways() -> None:
    """Hosts that are client and server at once, as in a permutation."""
    made = pairs(4)
    servers = {pair.client: pair.client_ip for pair in made} | {pair.server: pair.server_ip for pair in made}
    with (
        SignalPathManager(list(servers), 8, lambda _, d: d == 5001, servers) as manager,
        ExitStack() as stack,
    ):
        for pair in made:
            connect(stack, pair)
            connect(stack, pair, backwards=True)
        complete = manager.wait_all(8, 3)
        print("both ways:", complete, [r.established for r in manager.reports()])
        assert len(manager.reports()) == 8


@pytest.mark.parametrize("scenario", [scenario_one_way, scenario_both_ways])
def test_signal_endpoints(scenario: Callable[[], None]) -> None:
    sys.stdout.write(run_isolated(scenario))


def test_ten_subflows_are_refused() -> None:
    with pytest.raises(UsageError, match="1 to 9"):
        SignalPathManager([], 10, lambda _s, _d: True, {})
