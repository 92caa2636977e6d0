"""Congestion control by an agent in the simulator: physics, staleness, faults, and users' files."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from ccp import Flow, Report
from ccp.loading import load
from ccp.names import PREFIX, SHIPPED
from common.errors import UsageError
from harness.options import parsers
from model.congestion import CONGESTION_CONTROLS
from model.reasons import AGENT
from model.result import RunResult, Status
from model.spec import (
    AgentSpec,
    LinkEvent,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support.agents.faults import SWITCHES, check_switches, unknown_program
from tests.support.simulated_networks import result_of

RATE_MBPS, RTT_MS, QUEUE_PKTS = 48.0, 21.0, 80
MINE = '''
from ccp import Algorithm, Flow, Report


class Mine(Algorithm):
    program = """
acked: volatile = 0

acked += Ack.bytes_acked
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_report(self, flow: Flow, report: Report) -> None:
        {act}
'''


def point(cc: str, *, subflows: int = 1, **changes: object) -> RunSpec:
    """Two hosts behind one bottleneck of 48 Mb/s and 21 ms, whose queue holds a bandwidth-delay product."""
    spec = RunSpec(
        LinkSpec(RATE_MBPS, delay_us=1000 * RTT_MS / 6, queue_pkts=QUEUE_PKTS),
        TopologySpec("dumbbell", {"n": 1, "access": 10}), TransportSpec(subflows, cc),
        WorkloadSpec("reference"), engine="simulator", warmup_s=5.0, seconds=30.0,
        sampling=SamplingSpec(sockets_ms=50),
    )  # fmt: skip
    return dataclasses.replace(spec, **changes)  # type: ignore[arg-type]


def mine(text: str, tmp_path: Path) -> RunSpec:
    path = tmp_path / "mine.py"
    path.write_text(text)
    (own,) = parsers.ccs("--cc", str(path))
    return point(own, seconds=5.0)


def mean_window(result: RunResult) -> float:
    return float(result.samples["sockets"].columns["cwnd_pkts"].mean())


def goodput(result: RunResult) -> float:
    return result.flows[0].goodput_mbps


def test_reno_in_an_agent_tracks_reno() -> None:
    agents, core = result_of(point("ccp:reno")), result_of(point("reno"))
    assert agents.status is Status.OK
    assert goodput(agents) == pytest.approx(goodput(core), rel=0.03)
    assert mean_window(agents) == pytest.approx(mean_window(core), rel=0.1)
    assert agents.metrics["agent_errors"] == 0


@pytest.mark.parametrize("name", SHIPPED)
def test_every_algorithm_fills_the_link(name: str) -> None:
    result = result_of(point(PREFIX + name))
    assert result.status is Status.OK
    assert 0.8 * RATE_MBPS < goodput(result) < RATE_MBPS


@pytest.mark.parametrize("name", ["reno", "cubic"])
def test_a_window_of_two_packets_grows_again(name: str) -> None:
    """Their one acknowledgement leaves nothing in flight, although the whole window was in use."""
    cut = (LinkEvent(6.0, "l0", "r0", 0.0), LinkEvent(7.5, "l0", "r0", 1.0))
    result = result_of(point(PREFIX + name, seconds=10.0, events=cut))
    assert 0.6 * RATE_MBPS < goodput(result) < 0.9 * RATE_MBPS


def test_further_timeouts_leave_renos_threshold() -> None:
    """RFC 5681, section 3.1: several in one outage do not reduce it to two packets."""
    algorithm, programs = load("ccp:reno")
    flow = Flow(0, 1448, 100 * 1448, ("a", "b"), 0, programs)
    algorithm.on_create(flow)
    fields = {"acked": 0, "lost": 0, "marked": 0, "rtt_us": 20_000, "inflight": 0}
    for second in (1, 2, 4):
        algorithm.on_report(flow, Report.of(second * 1_000_000, {**fields, "timeout": 1}))
        assert flow.state.ssthresh == 50 * 1448
    algorithm.on_report(flow, Report.of(5_000_000, {**fields, "timeout": 1, "acked": 1448}))
    assert flow.state.ssthresh == 2 * 1448


@pytest.mark.parametrize("name", ["copa", "vegas"])
def test_delay_based_algorithms_keep_the_queue_short(name: str) -> None:
    bdp_pkts = RATE_MBPS * RTT_MS * 1000 / 8 / 1514
    assert mean_window(result_of(point(PREFIX + name))) < bdp_pkts + QUEUE_PKTS / 2


def test_two_runs_are_the_same_and_another_delay_is_not() -> None:
    spec = point("ccp:cubic", seconds=5.0)
    first, second = result_of(spec), result_of(spec)
    assert first.flows == second.flows
    late = dataclasses.replace(spec, agent=AgentSpec(delay_us=50_000))
    assert result_of(late).flows != first.flows
    assert late.content_hash() != spec.content_hash()


def test_a_stale_agent_loses_more() -> None:
    def drops(delay_us: float) -> float:
        return result_of(point("ccp:reno", agent=AgentSpec(delay_us=delay_us))).metrics["drops"]

    assert drops(100_000) > drops(100)


def test_fewer_reports_with_a_longer_interval() -> None:
    def reports(report_us: int) -> float:
        spec = point("ccp:reno", seconds=5.0, agent=AgentSpec(report_us=report_us))
        return result_of(spec).metrics["agent_reports"]

    assert 8 * reports(100_000) < reports(10_000) < 1.5 * 10_000_000 / 10_000


def test_subflows_of_mptcp_are_flows_of_the_agent() -> None:
    result = result_of(point("ccp:reno", subflows=2, seconds=5.0))
    assert result.flows[0].cc == "ccp:reno"
    assert result.metrics["agent_reports"] > 0
    assert goodput(result) > 0.8 * RATE_MBPS


GROWING = '''
from ccp import Algorithm, Flow, Report


class Growing(Algorithm):
    program = """
window: report = 0
timeout: volatile = 0

timeout = max(timeout, Flow.was_timeout)
if Ack.lost_pkts_sample > 0:
    Cwnd = Cwnd // 2
if Ack.lost_pkts_sample == 0:
    Cwnd = Cwnd + 100
window = Cwnd
if Flow.was_timeout or Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_report(self, flow: Flow, report: Report) -> None:
        assert flow.cwnd_bytes in (report.window, 2 * flow.mss), (flow.cwnd_bytes, report.window)
        {act}
'''


@pytest.mark.parametrize("act", ["pass", "flow.set(cwnd_bytes=0 if report.timeout else report.window)"])
def test_an_algorithm_sees_the_window_in_force(act: str, tmp_path: Path) -> None:
    """Without an agent's delay it is the datapath's own, whether program, timeout or agent set it."""
    spec = mine(GROWING.format(act=act), tmp_path)
    cut = (LinkEvent(6.0, "l0", "r0", 0.0), LinkEvent(7.5, "l0", "r0", 1.0))
    result = result_of(dataclasses.replace(spec, events=cut, agent=AgentSpec(delay_us=0)))
    assert result.metrics["agent_failed_flows"] == 0, result.provenance.get("agent_traceback")
    assert result.metrics["timeouts"] > 0
    assert result.metrics["agent_reports"] > 100


def test_a_users_file_sets_the_window(tmp_path: Path) -> None:
    spec = mine(MINE.format(act="flow.set(cwnd_bytes=20 * flow.mss)"), tmp_path)
    assert (spec.transport.cc, "20 * flow.mss" in spec.transport.algorithm) == ("mine.py", True)
    result = result_of(RunSpec.from_json(spec.to_json()))
    assert goodput(result) == pytest.approx(20 * 1448 * 8 / (RTT_MS * 1000), rel=0.05)  # window per RTT


def test_a_users_file_sets_the_rate(tmp_path: Path) -> None:
    act = "flow.set(cwnd_bytes=10**6, rate_bps=10_000_000)"
    result = result_of(mine(MINE.format(act=act), tmp_path))
    assert goodput(result) == pytest.approx(10.0, rel=0.03)


OF_PORTUS = '''
import pyportus as portus


class HalfFlow:
    def __init__(self, datapath, datapath_info):
        self.datapath, self.mss = datapath, datapath_info.mss
        assert datapath_info.init_cwnd >= 2 * self.mss and datapath_info.src_ip != datapath_info.dst_ip
        self.datapath.set_program("first", [("Cwnd", 40 * self.mss)])
        self.reports = 0

    def on_report(self, r):
        self.reports += 1
        if self.reports == 3:
            self.datapath.set_program("second", [("limit", 5)])
        elif r.acked > 0:
            self.datapath.update_field("Cwnd", 20 * self.mss)
            self.datapath.update_fields([("Rate", 50_000_000)])


class Half(portus.AlgBase):
    def datapath_programs(self):
        return {
            "first": """
                (def (Report (volatile acked 0)))
                (when true
                    (:= Report.acked (+ Report.acked Ack.bytes_acked))
                    (fallthrough))
                (when (> Micros Flow.rtt_sample_us)
                    (report)
                    (:= Micros 0))
            """,
            "second": """
                (def (Report (volatile acked 0)) (limit 1))
                (when (> Micros (* limit Flow.rtt_sample_us))
                    (:= Report.acked limit)
                    (report)
                    (:= Micros 0))
            """,
        }

    def new_flow(self, datapath, datapath_info):
        return HalfFlow(datapath, datapath_info)


{end}
'''


@pytest.mark.parametrize("end", ["portus.start('unix', Half())", "if __name__ == '__main__': 1 / 0"])
def test_a_file_for_portus_runs_as_it_is(end: str, tmp_path: Path) -> None:
    result = result_of(mine(OF_PORTUS.replace("{end}", end), tmp_path))
    assert result.status is Status.OK, result.reasons
    assert goodput(result) == pytest.approx(20 * 1448 * 8 / (RTT_MS * 1000), rel=0.05)
    assert not {"portus", "pyportus"} & sys.modules.keys(), "later files must not find it"


def test_another_text_is_another_point(tmp_path: Path) -> None:
    texts = [MINE.format(act=f"flow.set(cwnd_bytes={n} * flow.mss)") for n in (20, 30)]
    first, second = (mine(text, tmp_path) for text in texts)
    assert first.content_hash() != second.content_hash()
    plain = dataclasses.replace(first.transport, cc="reno")
    assert plain == TransportSpec(1, "reno")


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("raise KeyError('gone')", "KeyError: 'gone'"),
        ("flow.set(cwnd_bytes=-1)", "cwnd_bytes of -1: must be from 0"),
        ("flow.set(cwnd_bytes=2**63)", "must be from 0 to 2^63 - 1"),
        ("flow.set(gain=1)", "the program's controls are: none"),
        ("report.nothing", "the program reports no nothing; it reports: acked"),
    ],
)
def test_an_algorithm_that_raises_leaves_reno_and_makes_the_point_suspect(
    act: str, error: str, tmp_path: Path
) -> None:
    result = result_of(mine(MINE.format(act=act), tmp_path))
    assert result.status is Status.SUSPECT
    assert [reason.kind for reason in result.reasons] == [AGENT]
    assert error in result.reasons[0].text
    assert "mine.py" in result.provenance["agent_traceback"]
    assert goodput(result) > 0.5 * RATE_MBPS


@pytest.mark.parametrize(("value", "packets"), [("0", 2), ("2**63 - 1", None)])
def test_windows_out_of_range_are_clipped(value: str, packets: int | None, tmp_path: Path) -> None:
    result = result_of(mine(MINE.format(act=f"flow.set(cwnd_bytes={value})"), tmp_path))
    windows = result.samples["sockets"].columns["cwnd_pkts"]
    assert (windows == (packets or 2**20)).mean() > 0.5


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def\n", "mine.py, line 1"),
        ("import nothing_there\n", "mine.py, line 1: running it raised ModuleNotFoundError"),
        ("x = 1\n", "mine.py: has 0 classes of Algorithm"),
        (OF_PORTUS.replace("{end}", "portus.start('unix', 3)"), "mine.py: start() got int"),
        (
            OF_PORTUS.replace("def new_flow", "def on_flow").replace("{end}", ""),
            "Half has no method new_flow",
        ),
        (OF_PORTUS.replace("{end}", "").replace("limit Flow", "limits Flow"), "program 'second': "),
        (MINE.format(act="pass").replace("Ack.bytes_acked", "Ack.bytes"), "line 4, column 10: unknown name"),
    ],
)
def test_bad_files_are_refused_before_anything_starts(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        mine(text, tmp_path)
    assert error in str(caught.value)


def test_files_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(MINE.format(act="pass"))
    with pytest.raises(UsageError, match="two files have the same name"):
        parsers.ccs("--cc", f"{tmp_path}/a/mine.py,{tmp_path}/b/mine.py")
    with pytest.raises(UsageError, match="No such file"):
        parsers.ccs("--cc", f"{tmp_path}/none.py")


def test_short_flows_end_and_leave_nothing() -> None:
    star, workload = TopologySpec("star", {"n": 4}), WorkloadSpec("poisson")
    result = result_of(point("ccp:aggregate", topology=star, workload=workload, seconds=3.0))
    assert result.status is Status.OK
    assert sum(flow.completed_s > 0 for flow in result.flows) > 10


def test_a_flow_changes_between_programs(tmp_path: Path) -> None:
    spec = mine(SWITCHES, tmp_path)
    result = result_of(spec)
    assert result.status is Status.OK
    check_switches(result)
    assert result_of(spec).flows == result.flows


def test_an_unknown_program_leaves_reno_and_makes_the_point_suspect(tmp_path: Path) -> None:
    result = result_of(mine(unknown_program().text, tmp_path))
    assert result.status is Status.SUSPECT
    assert "there is no program 'nope'" in result.reasons[0].text


def test_each_algorithm_has_a_record() -> None:
    assert {name for name, cc in CONGESTION_CONTROLS.items() if cc.agent} == {PREFIX + n for n in SHIPPED}


def test_reno_in_an_agent_follows_a_cellular_link_as_reno_does() -> None:
    """Acknowledgements come in bursts there. The maximum in flight since the last report shows whether the
    window was used; the amount in flight at the instant of the report does not."""
    mbps = {}
    for cc in ("reno", "ccp:reno"):
        spec = RunSpec(
            LinkSpec(96.0, 20_000 / 6, trace="lte:4"), TopologySpec("dumbbell", {"n": 1, "access": 4}),
            TransportSpec(1, cc), WorkloadSpec("against_tcp"), engine="simulator", warmup_s=5.0, seconds=20.0,
        )  # fmt: skip
        (flow,) = result_of(spec).flows
        mbps[cc] = flow.goodput_mbps
    assert mbps["ccp:reno"] > 0.95 * mbps["reno"] > 2.0
