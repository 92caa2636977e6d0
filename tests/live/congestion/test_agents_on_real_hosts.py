"""Congestion control by an agent between real hosts: windows it sets, and what happens when it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ccp.loading import OwnAlgorithm
from engines.emulation.congestion.support import support
from engines.emulation.engine import MininetEngine
from engines.engine import Silent
from model.reasons import AGENT
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.physics,
    pytest.mark.skipif(os.geteuid() != 0 or not support().ok, reason="needs root and BPF"),
]
WINDOW_PKTS, RTT_MS = 20, 20.0
FIXED = f'''
from ccp import Algorithm, Flow, Report


class Fixed(Algorithm):
    program = """
acked: volatile = 0

acked += Ack.bytes_acked
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.set(cwnd_bytes={WINDOW_PKTS} * flow.mss)

    def on_report(self, flow: Flow, report: Report) -> None:
        pass
'''


def point(cc: str, subflows: int = 1) -> RunSpec:
    return RunSpec(
        LinkSpec(20.0, delay_us=1000 * RTT_MS / 4),
        topology=TopologySpec("star", {"n": 2}),
        transport=TransportSpec(subflows, cc),
        workload=WorkloadSpec("reference"),
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
        sampling=SamplingSpec(sockets_ms=100),
    )


def run(spec: RunSpec, tmp_path: Path) -> RunResult:
    engine = MininetEngine()
    try:
        engine.check(spec)
        return engine.run(spec, Silent(), tmp_path)
    finally:
        engine.close()


def agents_reasons(result: RunResult) -> list[str]:
    return [reason.text for reason in result.reasons if reason.kind == AGENT]


def test_the_window_is_the_agents(tmp_path: Path) -> None:
    result = run(point(OwnAlgorithm("fixed.py", FIXED)), tmp_path)
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {WINDOW_PKTS}
    assert result.flows[0].cc == "fixed.py"
    assert not agents_reasons(result)
    assert result.metrics["agent_fallback_acks"] == 0


def test_subflows_of_mptcp_are_under_the_agent(tmp_path: Path) -> None:
    result = run(point("ccp:reno", subflows=2), tmp_path)
    assert result.flows[0].cc == "ccp:reno"
    assert result.metrics["agent_reports"] > 0
    assert not agents_reasons(result)


def test_an_algorithm_that_raises_makes_the_point_suspect(tmp_path: Path) -> None:
    text = FIXED.replace("        pass\n", "        raise KeyError('gone')\n")
    result = run(point(OwnAlgorithm("raises.py", text)), tmp_path)
    assert result.status is Status.SUSPECT
    assert "KeyError: 'gone'" in agents_reasons(result)[0]
    assert "raises.py" in result.provenance["agent_traceback"]
    assert result.flows[0].goodput_mbps > 5


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_without_an_agent_reno_goes_on(sent: str, tmp_path: Path) -> None:
    then = f"os.kill(os.getpid(), signal.{sent})"
    act = f"        if report.t_us > flow.created_us + 10**6:\n            {then}\n"
    text = "import os\nimport signal\n" + FIXED.replace("        pass\n", act)
    result = run(point(OwnAlgorithm("fails.py", text)), tmp_path)
    sockets = result.samples["sockets"].columns
    assert result.status is Status.SUSPECT
    assert any("its process had ended" in text for text in agents_reasons(result))
    assert any("which Reno answered" in text for text in agents_reasons(result))
    assert sockets["cwnd_pkts"][-1] > WINDOW_PKTS  # it grows again
    assert result.metrics["agent_fallback_acks"] > 100
