"""Congestion control by an agent between real hosts: windows it sets, what happens when it fails, agents of
portus, and an agent's process, which is the user's and has nothing of root's."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import agents, messages
from ccp.names import OwnAlgorithm
from common.errors import RunError, UsageError
from common.privileges import User
from engines.emulation.congestion.agent import AgentDatapath
from engines.emulation.engine import MininetEngine
from engines.emulation.kernel.namespaces import call_in_netns, mount
from engines.emulation.machine import bpf_support
from engines.engine import Silent
from model.congestion import DATAPATH, kernel_name
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, TopologySpec, WorkloadSpec
from tests.support.agents.faults import (
    FIXED,
    SWITCHES,
    WINDOW_PKTS,
    agents_reasons,
    check_raised,
    check_reno_went_on,
    check_switches,
    check_window_is_the_agents,
    killed,
    point,
    raising,
    unknown_program,
)
from tests.support.machine_noise import exact
from tests.support.two_hosts import pairs, run_isolated

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.machine,
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
]
ID = 61666


def run(spec: RunSpec, tmp_path: Path) -> RunResult:
    engine = MininetEngine()
    try:
        engine.check(spec)
        return engine.run(spec, Silent(), tmp_path)
    finally:
        engine.close()


def briefly(algorithm: OwnAlgorithm | str, tmp_path: Path, subflows: int = 1) -> RunResult:
    """Run a point for as long as shows what an agent sets, and what happens after it has failed at once."""
    return run(dataclasses.replace(point(algorithm, subflows), warmup_s=0.5, seconds=1.5), tmp_path)


@pytest.mark.physics
def test_the_window_is_the_agents(tmp_path: Path) -> None:
    check_window_is_the_agents(briefly(OwnAlgorithm("fixed.py", FIXED), tmp_path))


@pytest.mark.physics
def test_a_flow_changes_between_programs(tmp_path: Path) -> None:
    check_switches(run(point(OwnAlgorithm("mine.py", SWITCHES)), tmp_path))


@pytest.mark.physics
def test_a_program_that_is_not_the_algorithms_leaves_reno(tmp_path: Path) -> None:
    result = briefly(unknown_program(), tmp_path)
    assert "there is no program 'nope'; the programs are: main" in agents_reasons(result)[0]
    assert result.flows[0].goodput_mbps > 5


@pytest.mark.physics
def test_subflows_of_mptcp_are_under_the_agent(tmp_path: Path) -> None:
    result = briefly("ccp:reno", tmp_path, subflows=2)
    assert result.flows[0].cc == "ccp:reno"
    assert result.metrics["agent_reports"] > 0
    assert not agents_reasons(result)


@pytest.mark.physics
def test_an_algorithm_that_raises_makes_the_point_suspect(tmp_path: Path) -> None:
    check_raised(briefly(raising(), tmp_path))


@pytest.mark.physics
@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_without_an_agent_reno_goes_on(sent: str, tmp_path: Path) -> None:
    check_reno_went_on(run(point(killed(sent)), tmp_path))


COMMAND = f"flow.set(cwnd_bytes={WINDOW_PKTS} * flow.mss)"


def commanding(command: str) -> OwnAlgorithm:
    assert COMMAND in FIXED
    return OwnAlgorithm("fails.py", FIXED.replace(COMMAND, command))


def test_the_minimum_window_is_two_packets(tmp_path: Path) -> None:
    algorithm = commanding("flow.set(cwnd_bytes=0)").text.replace(
        "        pass\n", "        flow.set(cwnd_bytes=report.t_us // 1000 % 2)\n"
    )
    result = briefly(OwnAlgorithm("fails.py", algorithm), tmp_path)
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {2}
    assert not agents_reasons(result)


def test_the_largest_command_is_a_window_like_any_other(tmp_path: Path) -> None:
    result = briefly(commanding("flow.set(cwnd_bytes=2**63 - 1)"), tmp_path)
    sockets = result.samples["sockets"].columns
    assert max(sockets["cwnd_pkts"][sockets["t_s"] >= 0]) == 2**20
    assert result.flows[0].goodput_mbps > 1
    assert not agents_reasons(result)


@pytest.mark.parametrize("command", ["flow.set(cwnd_bytes=-1)", "flow.set(rate_bps=2**63)"])
def test_numbers_out_of_range_leave_reno(command: str, tmp_path: Path) -> None:
    result = briefly(commanding(command), tmp_path)
    assert result.status is Status.SUSPECT
    assert "must be from 0 to 2^63 - 1" in agents_reasons(result)[0]
    assert result.flows[0].goodput_mbps > 1


def test_a_second_agent_is_refused_and_the_first_goes_on() -> None:
    first = AgentDatapath(point("ccp:reno"))
    try:
        with pytest.raises(RunError, match="the kernel already has one"):
            AgentDatapath(point("ccp:cubic"))
        assert first.stop().outcome.alive
    finally:
        first.close()


@pytest.mark.physics
def test_thousands_of_flows_have_an_agent_each(tmp_path: Path) -> None:
    spec = dataclasses.replace(
        point("ccp:reno"),
        link=LinkSpec(20.0, delay_us=1000.0),
        topology=TopologySpec("star", {"n": 6}),
        workload=WorkloadSpec("to_one", {"load": 50, "sizes": "fixed-3000"}),
        seconds=5.0,
    )
    result = run(spec, tmp_path)
    done = [flow for flow in result.flows if flow.completed_s < 100]
    assert len(result.flows) > 2000
    assert len(done) > 0.9 * len(result.flows)
    assert result.metrics["agent_unreported"] == 0
    assert result.metrics["agent_failed_flows"] == 0
    assert result.metrics["agent_acks"] > len(done)


SUPPORT = Path(__file__).resolve().parents[2] / "support" / "portus"
FAKE_AGENT = (sys.executable, str(SUPPORT / "fake_agent.py"), "/tmp/ccp/portus")
BUILD_S = 400


def portus_program(*command: str) -> OwnAlgorithm:
    text = (
        f"from ccp.portus import PortusAlgorithm\n\nclass Mine(PortusAlgorithm):\n    command = {command!r}\n"
    )
    return OwnAlgorithm("portus.py", text)


def controlled(tmp_path: Path, *command: str) -> RunResult:
    return briefly(portus_program(*command), tmp_path)


def test_the_window_is_the_recorded_agents(tmp_path: Path) -> None:
    result = controlled(tmp_path, *FAKE_AGENT)
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {20}
    assert not agents_reasons(result)
    assert result.metrics["agent_commands"] > 10


def test_a_recorded_agent_changes_between_its_programs(tmp_path: Path) -> None:
    check_windows(run(point(portus_program(*FAKE_AGENT, "two", "7")), tmp_path))


def test_a_program_that_was_not_installed_leaves_reno(tmp_path: Path) -> None:
    result = controlled(tmp_path, *FAKE_AGENT, "unknown")
    assert result.status is Status.SUSPECT
    assert "changes to program 9, which it did not install" in agents_reasons(result)[0]
    assert result.flows[0].goodput_mbps > 1


def check_windows(result: RunResult) -> None:
    """Check that the flow had 20 packets in one program and 30 in the other."""
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {20, 30}
    assert not agents_reasons(result)
    assert result.metrics["agent_errors"] == 0
    assert result.metrics["agent_commands"] > 10


def test_an_agent_that_dies_leaves_reno(tmp_path: Path) -> None:
    result = controlled(tmp_path, *FAKE_AGENT, "dies")
    assert "ended with code 3" in agents_reasons(result)[0]
    assert result.flows[0].goodput_mbps > 1


@pytest.fixture(scope="module")
def built() -> Iterator[str]:
    """Yield the folder of the crate's agents. An unprivileged user builds them, since the build runs programs
    of all crates that the lock file names; not below /tmp, which runs hide."""
    rustc = shutil.which("rustc") or str(Path.home() / ".cargo/bin/rustc")
    if not os.access(rustc, os.X_OK):
        pytest.skip("needs cargo")
    asked = subprocess.run(
        [rustc, "--print", "sysroot"], capture_output=True, text=True, timeout=20, check=True
    )
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home, toolchain = Path(folder), Path(folder, "toolchain")
        shutil.copytree(SUPPORT / "crate", home / "crate")
        toolchain.mkdir()
        subprocess.run(["chown", "-R", f"{ID}:{ID}", folder], check=True, timeout=20)
        # The user may not enter root's folders, so the toolchain has another name in the build's namespace.
        build = f"""mount --bind "$1" {toolchain} && cd {home}/crate &&
            exec setpriv --reuid {ID} --regid {ID} --clear-groups --no-new-privs env HOME={home} \
            CARGO_HOME={home}/cargo PATH={toolchain}/bin:/usr/bin:/bin cargo build --quiet --locked"""
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", build, "sh", asked.stdout.strip()],
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"cargo could not build it: {done.stderr.strip()[-200:]}")
        home.chmod(0o755)
        yield f"{home}/crate/target/debug"


@pytest.mark.physics
def test_an_agent_built_from_the_crate_fills_the_link(built: str, tmp_path: Path) -> None:
    result = controlled(tmp_path, f"{built}/aimd")
    with exact():
        assert not agents_reasons(result)
    assert result.flows[0].goodput_mbps > 10
    assert result.metrics["agent_reports"] > 50
    assert result.metrics["agent_commands"] > 50


@pytest.mark.physics
def test_an_agent_built_from_the_crate_changes_between_its_programs(built: str, tmp_path: Path) -> None:
    with exact():  # of physics only because it shares the build
        check_windows(run(point(portus_program(f"{built}/switch")), tmp_path))


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
    datapath = AgentDatapath(point(portus_program(*FAKE_AGENT)), user())
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
        (
            "import nothing_of_this_name",
            UsageError,
            r"mine\.py, line 1: running it raised ModuleNotFound",
        ),
        ("1 +", UsageError, r"mine\.py, line 1: invalid syntax"),
        ("import os\nos._exit(3)", RunError, r"starting the agent of mine\.py: it ended"),
        ("import os\nos.closerange(3, 99)" + FIXED, RunError, r"starting the agent of mine\.py: it ended"),
    ],
)
def test_an_error_in_the_users_file_is_one_line(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        started_with(text)
    assert "\n" not in str(raised.value)


@pytest.mark.physics
def test_throughput_beside_the_kernels_control() -> None:
    options = ["--flows", "2", "--runs", "1", "--reports", "ack,10ms", "--json"]
    result = CliRunner().invoke(agents.main, options)
    with exact():
        assert result.exit_code == 0, result.output
        kernel, ack, rare = json.loads(result.stdout)["rows"]
        assert [row["variant"] for row in (kernel, ack, rare)] == ["kernel", "ack", "10ms"]
    assert all(row["gbps"] > 0.1 for row in (kernel, ack, rare))
    assert ack["reports"] > 0.9 * ack["acks"] > 100, "a report for each acknowledgement"
    every_10_ms = 2 * 100 * 6
    assert 2 <= rare["reports"] <= every_10_ms + rare["retransmits"], "a loss is reported at once"
    assert ack["ns_per_ack"] > 50
    assert kernel["acks"] == 0


def test_every_message_comes_back() -> None:
    result = CliRunner().invoke(messages.main, ["--messages", "200", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["transport"] for row in rows] == list(messages.TRANSPORTS)
    assert all(row["lost"] == 0 and row["median_us"] > 1 for row in rows)
