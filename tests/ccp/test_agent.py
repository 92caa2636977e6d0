"""What an agent hands to an algorithm, and what becomes of flows whose algorithm raises."""

from __future__ import annotations

import pytest

from ccp.agent import Agent, FlowClosed, FlowCreated, FlowReport
from ccp.algorithm import Algorithm, Command, Flow, Report
from ccp.programs import all_compiled

PROGRAM = """
acked: volatile = 0
acked += Ack.bytes_acked
if Micros > 0:
    report()
"""


class Together(Algorithm):
    """Sets the windows of all flows at each report, and then may raise."""

    program = PROGRAM

    def __init__(self, *, raises: bool) -> None:
        self._raises, self._flows = raises, list[Flow]()

    def on_create(self, flow: Flow) -> None:
        self._flows.append(flow)

    def on_report(self, flow: Flow, report: Report) -> None:
        for each in self._flows:
            each.set(cwnd_bytes=report.acked)
        if self._raises:
            flow.set(cwnd_bytes=report.nothing)

    def poll(self) -> None:
        if self._raises:
            raise KeyError("gone")


def agent_with_two_flows(*, raises: bool) -> Agent:
    agent = Agent(Together(raises=raises), all_compiled({"main": PROGRAM}))
    for number in (1, 2):
        assert agent.handle(FlowCreated(number, 0, 1000, 10_000, "10.0.0.1", "10.0.0.2")) == []
    return agent


def test_a_report_may_set_several_flows() -> None:
    agent = agent_with_two_flows(raises=False)
    commands = agent.handle(FlowReport(2, 5, (30_000, 0, 0)))
    assert commands == [Command(1, cwnd_bytes=30_000), Command(2, cwnd_bytes=30_000)]
    assert agent.handle(FlowClosed(2)) == []
    assert agent.handle(FlowReport(2, 6, (30_000,))) == []
    assert (agent.reports, agent.failed_flows, agent.poll()) == (1, 0, [])


def test_a_flow_whose_algorithm_raises_falls_back_and_others_are_still_set() -> None:
    agent = agent_with_two_flows(raises=True)
    commands = agent.handle(FlowReport(2, 5, (30_000,)))
    assert commands == [Command(1, cwnd_bytes=30_000), Command(2, fall_back=True)]
    assert agent.traceback.endswith("the program reports no nothing; it reports: acked\n")
    assert agent.handle(FlowReport(2, 6, (30_000,))) == [], "it has lost the flow"
    assert (agent.reports, agent.failed_flows) == (1, 1)


def test_an_algorithm_that_raises_on_its_own_loses_all_flows() -> None:
    agent = agent_with_two_flows(raises=True)
    assert agent.poll() == [Command(1, fall_back=True), Command(2, fall_back=True)]
    assert "KeyError: 'gone'" in agent.traceback
    assert (agent.failed_flows, agent.poll()) == (2, [])


def test_a_report_has_its_fields_as_attributes_and_all_of_them_by_name() -> None:
    values = {"acked": 3, "of": 4, "values": 5, "lost-pkts": 6, "class": 7}
    report = Report.of(90, values, "sums")
    assert (report.t_us, report.program, report.acked) == (90, "sums", 3)
    assert report.values == values
    assert repr(report) == f"Report(90, {values}, 'sums')"
    with pytest.raises(AttributeError, match="marked"):
        _ = report.marked
