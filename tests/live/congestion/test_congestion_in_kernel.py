"""Congestion controls of our own in a real kernel: registered during a run, in force, and counted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.congestion import programs
from common.errors import RunError
from engines.emulation.congestion.registration import registered
from engines.emulation.engine import MininetEngine
from engines.emulation.kernel.namespaces import sysctl_path
from engines.emulation.machine import bpf_support
from engines.emulation.sandbox.client import emulation_lock
from engines.engine import Silent
from model.congestion import CONGESTION_CONTROLS, kernel_name
from model.result import RunResult
from model.spec import (
    LinkSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support import coupled_model as model
from tests.support.machine_noise import exact

pytestmark = [pytest.mark.emulation, pytest.mark.machine]
ROOT = Path(__file__).resolve().parents[3]
OURS = sorted(name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf)
DEADLINE_S = 10.0
MAX_STEP = 2
"""Packets by which four coupled subflows' windows can grow in 50 ms, with a margin."""
_HOLDER = """
import sys, time
sys.path.append(sys.argv[1])
from engines.emulation.congestion.registration import registered
with registered(sys.argv[2:]):
    print("registered", flush=True)
    time.sleep(60)
"""


@dataclass(frozen=True)
class Subflow:
    """One sample of a subflow: window in packets, RTT, retransmitted segments, acknowledged bytes."""

    subflow: int
    cwnd: float
    srtt_s: float
    retransmits: int
    acked: float


def in_the_kernel() -> set[str]:
    return set(sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split())


def wait_until_gone(names: set[str]) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while names & in_the_kernel():
        assert time.monotonic() < end_s, f"still registered: {names & in_the_kernel()}"
        time.sleep(0.01)


@pytest.fixture(scope="module", autouse=True)
def able() -> None:
    if not bpf_support().ok:
        pytest.skip(f"no BPF congestion control here: {bpf_support().text}")


@pytest.fixture
def machine() -> Iterator[None]:
    with emulation_lock(wait_s=DEADLINE_S):
        yield


@pytest.mark.usefixtures("machine")
def test_the_benchmark_finds_the_programs_of_what_is_registered() -> None:
    with registered(["dctcp"]):
        found = programs()
    assert {"every_ack", "cut", "event", "avoid"} <= found.keys()
    assert programs().keys().isdisjoint(found)


def hold(*names: str) -> subprocess.Popen[str]:
    """Start a process that has registered these, and return it."""
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
        with pytest.raises(RunError, match="rf_lia: the kernel already has one"), registered(["lia", "olia"]):
            pass
        assert "rf_olia" not in in_the_kernel()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=DEADLINE_S)
    wait_until_gone({"rf_lia", "rf_balia"})


def run(cc: str, subflows: int, raw: Path) -> RunResult:
    """Run two hosts on a switch for three seconds; sample every subflow 20 times a second."""
    spec = RunSpec(
        link=LinkSpec(20.0),
        topology=TopologySpec("star", {"n": 2}),
        transport=TransportSpec(subflows, cc),
        workload=WorkloadSpec("reference"),
        traffic="native",
        warmup_s=0.5,
        seconds=2.5,
        sampling=SamplingSpec(sockets_ms=50),
    )
    engine = MininetEngine()
    try:
        engine.check(spec)
        return engine.run(spec, Silent(), raw)
    finally:
        engine.close()


@pytest.mark.physics
@pytest.mark.parametrize("cc", OURS)
def test_in_force_on_every_subflow_of_a_point_and_gone_after(cc: str, tmp_path: Path) -> None:
    result = run(cc, 4, tmp_path)
    (flow,) = result.flows
    with exact():
        assert flow.cc == cc, result.reasons
        assert flow.subflows_joined == 4
    (port,) = (port for port in result.ports if port.peer == flow.dst)
    assert port.utilisation_pct > 70, "what was carried: in a short window MPTCP may deliver much less"
    segments = flow.bytes_received / 1448
    assert segments / 10 < result.metrics["cc_acks"] < 10 * segments
    wait_until_gone({kernel_name(cc)})
    if CONGESTION_CONTROLS[cc].coupled:
        check_growth(cc, result)


def check_growth(cc: str, result: RunResult) -> None:
    """Compare the windows' growth in congestion avoidance with the paper's formula for the same windows, RTTs
    and acknowledged bytes, sample by sample. Uncoupled windows would grow some 16 times as fast."""
    looks: dict[float, dict[int, Subflow]] = defaultdict(dict)
    for name, values in subflows(result):
        looks[name][values.subflow] = values
    grown, expected, of_reno = 0.0, 0.0, 0.0
    for before, after in pairwise(looks[t_s] for t_s in sorted(looks)):
        paths = [model.Path(one.cwnd, one.srtt_s) for one in before.values()]
        for i, (subflow, one) in enumerate(before.items()):
            then = after.get(subflow, one)
            step = then.cwnd - one.cwnd
            if not one.retransmits or then.retransmits > one.retransmits or not 0 <= step <= MAX_STEP:
                continue  # slow start before the first loss, a loss, or a window given back
            acked = (then.acked - one.acked) / 1448
            grown += step
            expected += acked * getattr(model, cc)(paths, i)
            of_reno += acked * model.reno(paths, i)
    assert expected > 3, "the run was too short to show growth"
    assert 0.4 * expected - 2 < grown < 2 * expected + 2
    assert grown < 0.4 * of_reno


def subflows(result: RunResult) -> Iterator[tuple[float, Subflow]]:
    """Yield every sample of every subflow of flow 0, with its time."""
    table = result.samples["sockets"]
    names = ("t_s", "subflow", "cwnd_pkts", "srtt_ms", "retransmits", "bytes_acked")
    for t_s, subflow, cwnd, srtt_ms, retransmits, acked in zip(*(table[n] for n in names), strict=True):
        yield float(t_s), Subflow(int(subflow), float(cwnd), srtt_ms / 1e3, int(retransmits), float(acked))
