"""Sockets of another user that choose a run's congestion control: M6 of the hostile review.

The kernel has one list of congestion controls for all network namespaces. The attacker is an ordinary user
with a namespace of her own, in which she is root.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engines.emulation.congestion.agent import OF_BPF
from engines.emulation.congestion.registration import CongestionCounts, registered, registered_object
from engines.emulation.machine import bpf_support
from model.congestion import CONGESTION_CONTROLS, DATAPATH, kernel_name
from tests.live.congestion.test_agents_on_real_hosts import run
from tests.support.agents.faults import agents_reasons, point

AS_USER = ("setpriv", "--reuid", "61666", "--regid", "61666", "--clear-groups", "unshare", "-Urn")


def has_namespaces() -> bool:
    """Return whether an ordinary user can make namespaces here."""
    try:
        done = subprocess.run([*AS_USER, "true"], capture_output=True, timeout=10, check=False)
    except OSError:
        return False
    return done.returncode == 0


pytestmark = [
    pytest.mark.emulation,
    pytest.mark.machine,
    pytest.mark.usefixtures("watched"),
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
    pytest.mark.skipif(not has_namespaces(), reason="users have no namespaces of their own"),
]
OURS = sorted(name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf)
EVERY = [*OURS, DATAPATH]
DEADLINE_S = 20.0
ATTACK = r"""
import json, socket, subprocess, sys, threading, time

name, ways, seconds = sys.argv[1], sys.argv[2].split(","), float(sys.argv[3])
MPTCP = 262
held = []


def choose(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def chosen(sock):
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def drain(sock):
    while sock.recv(1 << 16):
        pass


def connected(way, address="127.0.0.1"):
    protocol = MPTCP if way == "mptcp" else 0
    listener, client = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) for _ in range(2))
    if way == "listener":
        choose(listener)
    if way in ("before", "mptcp"):
        choose(client)
    listener.bind((address, 0))
    listener.listen()
    client.connect(listener.getsockname())
    server, _ = listener.accept()
    if way == "listener":
        client, server = server, client
    if way == "after":
        choose(client)
    threading.Thread(target=drain, args=(server,), daemon=True).start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        client.send(bytes(1 << 14))
    listener.close()  # one that is not connected keeps its control
    held.extend((client, server))
    return chosen(client)


def attack(way):
    if way == "closed":
        held.append(socket.socket())
        choose(held[-1])
        return chosen(held[-1])
    if way == "sysctl":
        path = "/proc/sys/net/ipv4/tcp_congestion_control"
        before = open(path).read()
        open(path, "w").write(name)
        found = connected(way)
        open(path, "w").write(before)
        return found
    if way in ("route", "locked_route"):
        address = "127.9.0.1" if way == "route" else "127.9.0.2"
        lock = ("lock",) * (way == "locked_route")
        ip("route", "add", "local", address, "dev", "lo", "table", "local", "congctl", *lock, name)
        try:
            return connected(way, address)
        finally:
            ip("route", "del", "local", address, "dev", "lo", "table", "local")
    return connected(way)


ip("link", "set", "lo", "up")
until = time.monotonic() + 20
while name not in open("/proc/sys/net/ipv4/tcp_available_congestion_control").read().split():
    assert time.monotonic() < until
    time.sleep(0.01)
print(json.dumps({way: attack(way) for way in ways}), flush=True)
sys.stdin.read()
"""
SWITCHED = ("before", "after", "listener", "sysctl", "mptcp", "route")
"""Ways of an attacker whose sockets get another congestion control."""


@contextmanager
def attacker(name: str, *ways: str, seconds: float = 0.1) -> Iterator[subprocess.Popen[str]]:
    """Run the attack in each of these ways; its sockets stay open as long as the context lasts."""
    argv = [*AS_USER, sys.executable, "-I", "-S", "-c", ATTACK, name, ",".join(ways), str(seconds)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        yield process
    finally:
        process.communicate(timeout=DEADLINE_S)


def answer(process: subprocess.Popen[str]) -> dict[str, str]:
    """Return the congestion control of the attacker's socket for each way."""
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def programs() -> set[int]:
    """Return the numbers of all BPF programs of the machine, which the kernel counts up."""
    libbpf, number, found = ctypes.CDLL("libbpf.so.1"), ctypes.c_uint32(0), set()
    while libbpf.bpf_prog_get_next_id(number, ctypes.byref(number)) == 0:
        found.add(number.value)
    return found


def wait_until_gone(before: set[int]) -> None:
    until_s = time.monotonic() + DEADLINE_S
    while left := programs() - before:
        assert time.monotonic() < until_s, f"BPF programs that are left: {left}"
        time.sleep(0.05)


@pytest.mark.parametrize("cc", EVERY)
def test_foreign_sockets_are_not_counted_get_another_control_and_hold_nothing(cc: str) -> None:
    """The kernel lets one whose route prescribes the control change nothing: it holds it while it is open."""
    before, name = programs(), kernel_name(cc)
    control = registered_object(cc)
    try:
        with attacker(name, *SWITCHED) as process:
            found = answer(process)
            with attacker(name, "locked_route") as holder:
                assert answer(holder) == {"locked_route": name}
            counted = control.counters(3)
            activity = control.counters(OF_BPF, b"activities") if cc == DATAPATH else [0]
            control.close()
            wait_until_gone(before)
    finally:
        control.close()
    assert found == dict.fromkeys(SWITCHED, "reno")
    assert CongestionCounts(*counted) == CongestionCounts()
    assert not any(activity)


def test_a_foreign_socket_that_never_connects_does_not_disturb_the_next_run() -> None:
    before = programs()
    with registered(["lia"]), attacker("rf_lia", "closed") as first:
        assert answer(first) == {"closed": "rf_lia"}
    with attacker("rf_lia", "closed") as holder:
        with registered(["lia"]):
            assert answer(holder) == {"closed": "rf_lia"}
        with registered(["lia"]) as again, attacker("rf_lia", "before") as late:
            assert answer(late) == {"before": "reno"}
            assert again.counts() == CongestionCounts()
    wait_until_gone(before)


@pytest.mark.physics
def test_a_run_counts_and_reports_its_own_sockets_only(tmp_path: Path) -> None:
    alone = run(point("ccp:reno"), tmp_path)
    before = programs()
    with attacker(kernel_name(DATAPATH), "before", "after", "sysctl", seconds=1.0) as process:
        attacked = run(point("ccp:reno"), tmp_path)
        wait_until_gone(before)
        assert set(answer(process).values()) == {"reno"}
    assert not agents_reasons(attacked)
    assert attacked.metrics["agent_reports"] < 1.5 * alone.metrics["agent_reports"]
    per_segment = 2.2  # of a receiver that acknowledges each segment, where the other did every second one
    assert attacked.metrics["agent_acks"] < per_segment * alone.metrics["agent_acks"]
    assert attacked.metrics["agent_unreported"] == 0
