"""Congestion controls of our own in a real kernel: registered while a run lives, in force, counted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.congestion import CONGESTION_CONTROLS, kernel_name
from engines.emulation.congestion.registration import registered
from engines.emulation.congestion.support import support
from engines.emulation.engine import MininetEngine
from engines.emulation.lock import emulation_lock
from engines.emulation.netns import sysctl_path
from engines.engine import Silent
from engines.result import RunResult
from engines.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from fabric.errors import RunError

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(not support().ok, reason=f"no BPF congestion control here: {support().told}"),
]
ROOT = Path(__file__).resolve().parents[2]
OURS = sorted(name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf)
DEADLINE_S = 10.0
_HOLDER = """
import sys, time
sys.path.append(sys.argv[1])
from engines.emulation.congestion.registration import registered
with registered(sys.argv[2:]):
    print("registered", flush=True)
    time.sleep(60)
"""


def in_the_kernel() -> set[str]:
    return set(sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split())


def wait_until_gone(names: set[str]) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while names & in_the_kernel():
        assert time.monotonic() < end_s, f"still registered: {names & in_the_kernel()}"
        time.sleep(0.01)


@pytest.fixture
def machine() -> Iterator[None]:
    with emulation_lock(wait_s=DEADLINE_S):
        yield


def hold(*names: str) -> subprocess.Popen[str]:
    """A process that has registered these."""
    argv = [sys.executable, "-c", _HOLDER, str(ROOT), *names]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "registered\n"
    return process


@pytest.mark.usefixtures("machine")
def test_all_at_once_and_none_after() -> None:
    theirs = {kernel_name(name) for name in OURS}
    with registered(OURS) as found:
        assert theirs <= in_the_kernel()
        assert found.counts().acks == 0
    wait_until_gone(theirs)


@pytest.mark.usefixtures("machine")
def test_gone_after_kill_9_and_a_second_one_of_the_name_is_refused_before() -> None:
    process = hold("lia", "balia")
    try:
        assert {"rf_lia", "rf_balia"} <= in_the_kernel()
        with pytest.raises(RunError, match="rf_lia already"), registered(["lia", "olia"]):
            pass
        assert "rf_olia" not in in_the_kernel()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=DEADLINE_S)
    wait_until_gone({"rf_lia", "rf_balia"})


def run(cc: str, subflows: int, raw: Path) -> RunResult:
    """Two hosts on a switch for two seconds."""
    spec = RunSpec(
        link=LinkSpec(20.0),
        topology=TopologySpec("star", {"n": 2}),
        transport=TransportSpec(subflows, cc),
        workload=WorkloadSpec("reference"),
        traffic="native",
        warmup_s=0.5,
        seconds=1.5,
    )
    engine = MininetEngine()
    try:
        engine.check(spec)
        return engine.run(spec, Silent(), raw)
    finally:
        engine.close()


@pytest.mark.parametrize("cc", OURS)
def test_in_force_on_every_subflow_of_a_point_and_gone_after(cc: str, tmp_path: Path) -> None:
    result = run(cc, 4, tmp_path)
    (flow,) = result.flows
    assert flow.cc == cc, result.reasons
    assert flow.subflows_joined == 4
    assert flow.goodput_mbps > 0.7 * 20
    segments = flow.bytes_received / 1448
    assert segments / 10 < result.metrics["cc_acks"] < 10 * segments
    wait_until_gone({kernel_name(cc)})
