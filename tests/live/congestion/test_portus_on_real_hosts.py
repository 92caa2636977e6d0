"""Agents of portus control real hosts: one that answers as recorded, and one built from the crate."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccp.names import OwnAlgorithm
from engines.emulation.machine import bpf_support
from model.result import RunResult, Status
from tests.live.congestion.test_agents_on_real_hosts import run
from tests.support.agents.faults import agents_reasons, point

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
]
SUPPORT = Path(__file__).resolve().parents[2] / "support" / "portus"
BUILD_S, UID = 400, 61666
SOCKET = "/tmp/ccp/portus"


def controlled(tmp_path: Path, *command: str) -> RunResult:
    text = (
        f"from ccp.portus import PortusAlgorithm\n\nclass Mine(PortusAlgorithm):\n    command = {command!r}\n"
    )
    return run(point(OwnAlgorithm("portus.py", text)), tmp_path)


def test_the_window_is_the_recorded_agents(tmp_path: Path) -> None:
    result = controlled(tmp_path, sys.executable, str(SUPPORT / "fake_agent.py"), SOCKET)
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {20}
    assert not agents_reasons(result)
    assert result.metrics["agent_commands"] > 10


def test_a_recorded_agent_changes_between_its_programs(tmp_path: Path) -> None:
    agent = (sys.executable, str(SUPPORT / "fake_agent.py"), SOCKET, "two", "7")
    check_windows(controlled(tmp_path, *agent))


def test_a_program_that_was_not_installed_leaves_reno(tmp_path: Path) -> None:
    result = controlled(tmp_path, sys.executable, str(SUPPORT / "fake_agent.py"), SOCKET, "unknown")
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
    result = controlled(tmp_path, sys.executable, str(SUPPORT / "fake_agent.py"), SOCKET, "dies")
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
        subprocess.run(["chown", "-R", f"{UID}:{UID}", folder], check=True, timeout=20)
        # The user may not enter root's folders, so the toolchain has another name in the build's namespace.
        build = f"""mount --bind "$1" {toolchain} && cd {home}/crate &&
            exec setpriv --reuid {UID} --regid {UID} --clear-groups --no-new-privs env HOME={home} \
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


def test_an_agent_built_from_the_crate_fills_the_link(built: str, tmp_path: Path) -> None:
    result = controlled(tmp_path, f"{built}/aimd")
    assert not agents_reasons(result)
    assert result.flows[0].goodput_mbps > 10
    assert result.metrics["agent_reports"] > 50
    assert result.metrics["agent_commands"] > 50


def test_an_agent_built_from_the_crate_changes_between_its_programs(built: str, tmp_path: Path) -> None:
    check_windows(controlled(tmp_path, f"{built}/switch"))
