"""The agent's process is the user's: it has nothing of root's, and controls its flows as before."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path

import pytest

from ccp.names import OwnAlgorithm
from common.errors import RunError, UsageError
from common.privileges import User
from engines.emulation.congestion.agent import AgentDatapath
from engines.emulation.kernel.namespaces import call_in_netns, mount
from engines.emulation.machine import bpf_support
from model.congestion import DATAPATH, kernel_name
from tests.support.agents.faults import FIXED, WINDOW_PKTS, point
from tests.support.two_hosts import pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
]
ID = 61666
FAKE_AGENT = Path(__file__).resolve().parents[2] / "support" / "portus" / "fake_agent.py"
PORTUS = "from ccp.portus import PortusAlgorithm\n\nclass Mine(PortusAlgorithm):\n    command = {command!r}\n"
LOOK = """
import json
import os


def refused(path: str, mode: str) -> bool:
    try:
        open(path, mode).close()
    except PermissionError:
        return True
    return False


def status(name: str) -> str:
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name))


found = {
    "ids": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
    "capabilities": [status(name) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")],
    "no_new_privs": status("NoNewPrivs"),
    "refused": [refused("/root/x", "w"), refused("/etc/refabric", "w"), refused("/etc/shadow", "r")],
    "home": os.environ["HOME"],
    "open": sorted(
        os.readlink(f"/proc/self/fd/{fd}").partition(":")[0]
        for fd in os.listdir("/proc/self/fd")
        if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")
    ),
    "memory_of_parent": refused(f"/proc/{os.getppid()}/mem", "r"),
}
print(json.dumps(found), flush=True)
"""


def user() -> User:
    return User.of(ID, ID)


def window_of(sender: socket.socket) -> int:
    info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return int(struct.unpack_from("I", info, 80)[0])


def fixed_window() -> None:
    """Scenario: an algorithm of the user's sets the window of a connection between two hosts."""
    (pair,) = pairs(1, rate_mbit=20)
    secret = os.open("/etc/shadow", os.O_RDONLY)
    os.set_inheritable(secret, True)
    datapath = AgentDatapath(point(OwnAlgorithm("mine.py", LOOK + FIXED)), user())
    try:
        datapath.admit([pair.client, pair.server])
        listener = call_in_netns(pair.server.pid, lambda: socket.create_server((pair.server_ip, 5001)))
        sender = call_in_netns(pair.client.pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, kernel_name(DATAPATH).encode())
        sender.connect((pair.server_ip, 5001))
        receiver, _ = listener.accept()
        reading = threading.Thread(target=lambda: [None for _ in iter(lambda: receiver.recv(1 << 16), b"")])
        reading.start()
        until_s = time.monotonic() + 2
        while time.monotonic() < until_s:
            sender.send(bytes(1 << 14))
        window = window_of(sender)
        sender.close()
        reading.join()
        account = datapath.stop()
    finally:
        datapath.close()
    print(json.dumps({"window": window, "reasons": len(account.reasons), **account.metrics}))


def test_an_own_algorithm_runs_as_the_user_and_controls_its_flow() -> None:
    looked, did = map(json.loads, run_isolated(fixed_window).splitlines()[-2:])
    assert set(looked["ids"]) == {ID}
    assert set(looked["capabilities"]) == {"0" * 16}
    assert looked["no_new_privs"] == "1"
    assert looked["refused"] == [True, True, True]
    assert looked["memory_of_parent"]
    assert looked["home"] == "/"
    assert looked["open"] == ["anon_inode", "anon_inode", "anon_inode", "socket"]
    assert did["window"] == WINDOW_PKTS
    assert did["agent_reports"] > 10
    assert not any(
        did[name] for name in ("agent_failed_flows", "agent_errors", "agent_fallback_acks", "reasons")
    )


def portus_bridge() -> None:
    """Scenario: a program of portus is the user's, and so are the sockets of its bridge."""
    mount("tmpfs", "/tmp", "tmpfs", options="mode=1777")
    command = (sys.executable, str(FAKE_AGENT), "/tmp/ccp/portus")
    datapath = AgentDatapath(point(OwnAlgorithm("portus.py", PORTUS.format(command=command))), user())
    try:
        found = {str(path): path.lstat().st_uid for path in Path("/tmp/ccp").iterdir()}
        alive = datapath.stop().outcome.alive
    finally:
        datapath.close()
    print(json.dumps({"owners": found, "alive": alive}))


def test_a_program_of_portus_runs_as_the_user() -> None:
    found = json.loads(run_isolated(portus_bridge).splitlines()[-1])
    assert {"/tmp/ccp/portus", "/tmp/ccp/refabric"} <= found["owners"].keys()
    assert set(found["owners"].values()) == {ID}
    assert found["alive"]


def started_with(text: str) -> None:
    AgentDatapath(point(OwnAlgorithm("mine.py", text)), user()).close()


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("import nothing_of_this_name", UsageError, r"mine\.py: running it raised ModuleNotFoundError"),
        ("1 +", UsageError, r"mine\.py, line 1: invalid syntax"),
        ("import os\nos._exit(3)", RunError, r"starting the agent of mine\.py: it ended"),
        ("import os\nos.closerange(3, 99)" + FIXED, RunError, r"starting the agent of mine\.py: it ended"),
    ],
)
def test_an_error_in_the_users_file_is_one_line(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        started_with(text)
    assert "\n" not in str(raised.value)
