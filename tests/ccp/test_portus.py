"""Messages of Portus as bytes, and the agent that speaks them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccp.agent import Agent, FlowClosed, FlowCreated, FlowReport
from ccp.algorithm import Algorithm, Command, Flow, Report
from ccp.loading import load
from ccp.names import OwnAlgorithm
from ccp.portus import (
    InstallMessage,
    PortusAlgorithm,
    UpdateMessage,
    create,
    decoded,
    measure,
    ready,
    translated,
)
from ccp.programs import all_compiled, compiled
from common.errors import UsageError
from engines.simulation.engine import SimulatorEngine
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.ccp.test_fold_programs import stream
from tests.support.agents.ccp_model import Native, primitives
from tests.support.portus.messages import (
    BACK_TO_PROBE,
    CHANGE_PROGRAM,
    GROWN,
    HALVED,
    HOLD,
    INSTALL,
    PROBE,
    TO_HOLD,
    TO_PROBE,
    TWENTY,
)

FAKE = Path(__file__).resolve().parents[1] / "support" / "portus" / "fake_agent.py"
AGENTS_OWN = """
(def (Report (volatile acked 0) (volatile lost 0)))
(when true
  (:= Report.acked (+ Report.acked Ack.bytes_acked))
  (:= Report.lost (+ Report.lost Ack.lost_pkts_sample))
  (fallthrough))
(when (|| Flow.was_timeout (> Ack.lost_pkts_sample 0))
  (:= Micros 0) (report))
(when (> Micros Flow.rtt_sample_us)
  (:= Micros 0) (report))
"""
"""The program in tests/support/portus/crate/src/main.rs."""


def install(data: bytes = INSTALL) -> InstallMessage:
    message = decoded(data)
    assert isinstance(message, InstallMessage)
    return message


def test_recorded_answers() -> None:
    begun, grown, halved = (decoded(data) for data in (CHANGE_PROGRAM, GROWN, HALVED))
    assert isinstance(begun, UpdateMessage)
    assert isinstance(grown, UpdateMessage) and isinstance(halved, UpdateMessage)
    assert (begun.flow, begun.program, begun.cwnd_bytes, begun.rate_bytes_per_s) == (1, 1, 14_480, None)
    assert (grown.program, grown.cwnd_bytes, halved.cwnd_bytes) == (None, 15_928, 7_964)


def test_the_recorded_program_reports_what_ours_does() -> None:
    theirs, ours, reports = Native(translated(install())), Native(compiled(AGENTS_OWN)), 0
    for values, now_us in stream(seed=20):
        expected = ours.acknowledge(values, now_us)
        assert theirs.acknowledge(values, now_us) == expected
        reports += expected is not None
    assert theirs.errors == ours.errors
    assert reports > 50


def test_our_messages_have_the_lengths_they_state() -> None:
    created, reported = create(3, 14_480, 1448, 1, 2), measure(3, 1, (5, 6))
    for data, length in ((ready(7), 12), (created, 96), (reported, 32), (measure(3, 1, ()), 16)):
        assert len(data) == length == int.from_bytes(data[2:4], "little")
    assert created[8:16] == b"\x90\x38\0\0\xa8\x05\0\0"


@given(st.integers(0, len(INSTALL) - 1), st.integers(0, 255))
def test_changed_bytes_are_another_program_or_one_refusal(place: int, value: int) -> None:
    data = bytearray(INSTALL)
    data[place] = value
    try:
        message = decoded(bytes(data))
        if isinstance(message, InstallMessage):
            assert len(translated(message).packed()) == len(translated(install()).packed())
    except UsageError as error:
        assert "agent of portus" in str(error)


@given(st.integers(0, len(INSTALL) - 1))
def test_messages_of_another_length_are_refused(length: int) -> None:
    for data in (INSTALL[:length], INSTALL + INSTALL[: length + 1], HALVED + bytes(length + 1)):
        with pytest.raises(UsageError, match="agent of portus"):
            decoded(data)


@contextmanager
def running(folder: Path, how: str = "") -> Iterator[tuple[PortusAlgorithm, Agent]]:
    path = str(folder / "portus")

    class Fake(PortusAlgorithm):
        command = (sys.executable, str(FAKE), path, *([how] if how else []))
        listens = path

    algorithm = Fake()
    agent = Agent(algorithm, algorithm.start())
    try:
        assert agent.handle(FlowCreated(4, 0, 1448, 14_480, "10.0.0.1", "10.0.0.2")) == []
        yield algorithm, agent
    finally:
        with closing(algorithm._socket):
            algorithm._agent.kill()
            algorithm._agent.wait()


def polled_until(agent: Agent, count: int) -> list[Command]:
    commands: list[Command] = []
    deadline_s = time.monotonic() + 10
    while len(commands) < count:
        assert time.monotonic() < deadline_s
        commands.extend(agent.poll())
        time.sleep(0.01)
    return commands


def test_reports_go_out_and_windows_come_back(tmp_path: Path) -> None:
    with running(tmp_path) as (_, agent):
        assert [command.cwnd_bytes for command in polled_until(agent, 1)] == [14_480]
        assert agent.handle(FlowReport(4, 100, (1448, 0), program=1)) == []
        assert [command.cwnd_bytes for command in polled_until(agent, 1)] == [20 * 1448]


def test_flows_fall_back_when_the_agent_has_ended(tmp_path: Path) -> None:
    with running(tmp_path, "dies") as (algorithm, agent):
        agent.handle(FlowReport(4, 100, (1448, 0), program=1))
        algorithm._agent.wait(10)
        (command,) = agent.poll()
        assert (command.flow, command.fall_back) == (4, True)
        assert "ended with code 3" in agent.traceback
        assert agent.failed_flows == 1


def test_recorded_messages_of_two_programs() -> None:
    assert [install(data).number for data in (PROBE, HOLD)] == [1, 2]
    changes = [decoded(data) for data in (TO_PROBE, TO_HOLD, BACK_TO_PROBE, TWENTY)]
    assert all(isinstance(change, UpdateMessage) for change in changes)
    said = [
        (each.program, each.cwnd_bytes, each.controls) for each in changes if isinstance(each, UpdateMessage)
    ]
    assert said == [(1, 28_960, {}), (2, None, {1: 43_440}), (1, None, {}), (None, 28_960, {})]


def test_infinity_is_the_largest_number_of_32_bits_as_in_libccp() -> None:
    flow = Native(translated(install(PROBE)))
    (_, rtt, *_) = flow.acknowledge(primitives(bytes_acked=1448, rtt_sample_us=0xFFFFFFFF), 0) or [0, 0]
    assert flow.registers[:2] == [1448, 0xFFFFFFFF]
    assert rtt == 0


def test_a_volatile_control_begins_again_after_each_report() -> None:
    flow = Native(translated(install(HOLD)), window=10_000)
    flow.set_control(1, 43_440)
    assert flow.acknowledge(primitives(bytes_acked=1448, rtt_sample_us=100), 50) is None
    assert flow.registers[16:18] == [1, 43_440], "seen was set by the program, cap by the agent"
    fields = flow.acknowledge(primitives(bytes_acked=1448, rtt_sample_us=100), 101)
    assert (fields or [])[:3] == [2896, 0, 2]
    assert flow.window == 43_440
    assert flow.registers[16:18] == [0, 43_440], "volatile: its initial value; else the agent's"
    assert flow.registers[:3] == [0, 0, 2], "acks is not volatile"


def test_an_agent_changes_between_its_programs(tmp_path: Path) -> None:
    with running(tmp_path, "two") as (_, agent):
        (begun,) = polled_until(agent, 1)
        assert (begun.program, begun.cwnd_bytes, begun.controls) == (1, 28_960, ())
        agent.handle(FlowReport(4, 100, (1448, 90), program=1))
        (held,) = polled_until(agent, 1)
        assert (held.program, held.cwnd_bytes, held.controls) == (2, None, ((1, 43_440),))
        agent.handle(FlowReport(4, 200, (1448, 0, 9), program=2))
        back = Command(4)
        while back.cwnd_bytes is None:
            for each in polled_until(agent, 1):
                back.update(each)
        assert (back.program, back.cwnd_bytes, back.controls) == (1, 28_960, ())
        assert agent.traceback == ""


def test_without_a_program_there_are_no_reports(tmp_path: Path) -> None:
    with running(tmp_path, "two") as (algorithm, agent):
        polled_until(agent, 1)
        agent.handle(FlowReport(4, 100, (), program=0))  # of the empty program, which cannot report
        assert algorithm.unsent == 0
        assert agent.poll() == []


def test_a_program_that_was_not_installed_leaves_reno(tmp_path: Path) -> None:
    with running(tmp_path, "unknown") as (_, agent):
        (command,) = polled_until(agent, 1)
        assert (command.flow, command.fall_back) == (4, True)
        assert "changes to program 9, which it did not install; it installed: 1" in agent.traceback


def mine(command: str) -> RunSpec:
    text = (
        "from ccp.portus import PortusAlgorithm\n\nclass Mine(PortusAlgorithm):\n"
        f"    command = ({command!r},)\n"
    )
    return RunSpec(
        LinkSpec(10.0), TopologySpec("star", {"n": 2}), TransportSpec(1, OwnAlgorithm("mine.py", text)),
        WorkloadSpec("reference"), engine="simulator", warmup_s=0.0, seconds=1.0,
    )  # fmt: skip


def test_simulated_hosts_are_refused() -> None:
    with pytest.raises(UsageError, match="--engine mininet"):
        SimulatorEngine().check(mine(sys.executable))


@pytest.mark.parametrize("command", ["aimd", "/nowhere/aimd"])
def test_the_command_must_be_there(command: str) -> None:
    with pytest.raises(UsageError, match="absolute path of a program"):
        load("mine.py", mine(command).transport.algorithm_text)


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
