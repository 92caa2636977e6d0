"""Algorithms of agents that fail or do one thing, points to run them in, and their required outcome in
either kernel."""

from __future__ import annotations

from ccp.names import OwnAlgorithm
from model.reasons import AGENT
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec

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

SWITCHES = f'''
from ccp import Algorithm, Flow, Report


class Switches(Algorithm):
    """{WINDOW_PKTS} packets while it probes, half as many more while the other program holds the window."""

    programs = {{
        "probe": """
acked: volatile = 0
rtt: report = infinity

acked += Ack.bytes_acked
rtt = min(rtt, Flow.rtt_sample_us)
if Micros > Flow.report_us:
    Micros = 0
    report()
""",
        "hold": """
acks: volatile = 0
cap: control = 0

acks += 1
if Micros > Flow.report_us:
    Cwnd = cap
    Micros = 0
    report()
""",
    }}

    def on_create(self, flow: Flow) -> None:
        flow.state = 0
        flow.set(cwnd_bytes={WINDOW_PKTS} * flow.mss)

    def on_report(self, flow: Flow, report: Report) -> None:
        if report.program != flow.program:
            return  # it was on its way when the program was changed
        assert (report.acks if report.program == "hold" else report.rtt) > 0
        flow.state += 1
        if flow.state % 10:
            return
        if flow.program == "probe":
            flow.set_program("hold", cap={WINDOW_PKTS + WINDOW_PKTS // 2} * flow.mss)
        else:
            flow.set_program("probe", cwnd_bytes={WINDOW_PKTS} * flow.mss)
'''


def point(cc: str, subflows: int = 1) -> RunSpec:
    return RunSpec(
        LinkSpec(20.0, delay_us=1000 * RTT_MS / 4),
        topology=TopologySpec("star", {"n": 2}),
        transport=TransportSpec(subflows, cc),
        workload=WorkloadSpec("reference"),
        traffic="native",
        warmup_s=1.0,
        seconds=2.5,
        sampling=SamplingSpec(sockets_ms=100),
    )


def agents_reasons(result: RunResult) -> list[str]:
    return [reason.text for reason in result.reasons if reason.kind == AGENT]


def acting(name: str, statements: str) -> OwnAlgorithm:
    """Return FIXED in a file of this name, with these statements for each report."""
    return OwnAlgorithm(name, FIXED.replace("        pass\n", statements))


def raising() -> OwnAlgorithm:
    return acting("raises.py", "        raise KeyError('gone')\n")


def unknown_program() -> OwnAlgorithm:
    return acting("fails.py", "        flow.set_program('nope')\n")


def check_switches(result: RunResult) -> None:
    """Check a result of `OwnAlgorithm("mine.py", SWITCHES)`: both programs run, and nothing fails."""
    windows = result.samples["sockets"].columns["cwnd_pkts"]
    assert {WINDOW_PKTS, WINDOW_PKTS + WINDOW_PKTS // 2} <= set(windows[len(windows) // 3 :].tolist())
    assert not agents_reasons(result)
    assert result.metrics["agent_errors"] == result.metrics["agent_failed_flows"] == 0


def killed(sent: str) -> OwnAlgorithm:
    """Return an algorithm whose process gets this signal a second after a flow has begun."""
    then = f"os.kill(os.getpid(), signal.{sent})"
    act = f"        if report.t_us > flow.created_us + 10**6:\n            {then}\n"
    return OwnAlgorithm("fails.py", "import os\nimport signal\n" + acting("fails.py", act).text)


def check_window_is_the_agents(result: RunResult) -> None:
    """Check a result of `OwnAlgorithm("fixed.py", FIXED)`."""
    sockets = result.samples["sockets"].columns
    assert set(sockets["cwnd_pkts"][sockets["t_s"] >= 0].tolist()) == {WINDOW_PKTS}
    assert result.flows[0].cc == "fixed.py"
    assert not agents_reasons(result)
    assert result.metrics["agent_fallback_acks"] == 0


def check_raised(result: RunResult) -> None:
    """Check a result of `raising()`: the point is suspect, has the traceback, and its flow goes on."""
    assert result.status is Status.SUSPECT
    assert "KeyError: 'gone'" in agents_reasons(result)[0]
    assert "raises.py" in result.provenance["agent_traceback"]
    assert result.flows[0].goodput_mbps > 5


def check_reno_went_on(result: RunResult) -> None:
    """Check a result of `killed()`: the point is suspect, and the window grows again."""
    sockets = result.samples["sockets"].columns
    assert result.status is Status.SUSPECT
    assert any("its process had ended" in text for text in agents_reasons(result))
    assert any("which Reno answered" in text for text in agents_reasons(result))
    assert sockets["cwnd_pkts"][-1] > WINDOW_PKTS
    assert result.metrics["agent_fallback_acks"] > 100
