"""Algorithms with several programs: libccp's semantics of a change by hand, and the interface of Flow."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ccp.agent import Agent, FlowCreated, FlowReport
from ccp.algorithm import Algorithm, Command, Flow, Report
from ccp.language import ProgramError
from ccp.loading import load
from ccp.names import OwnAlgorithm
from ccp.programs import EMPTY, MAX_PROGRAMS, all_compiled, compiled
from common.errors import UsageError
from engines.emulation.congestion.channels import _COMMAND, FlowCommands
from tests.support.agents.ccp_model import Native, primitives

SUMS = """
acked: volatile = 0
most: report = 7
gain: control = 8

acked += Ack.bytes_acked
most = max(most, acked)
if Micros > 100:
    report()
"""
COUNTS = """
acks: volatile = 40
cap: control = 3
gain: control = 5

acks += 1
if acks > 41:
    gain = gain + 1
    Cwnd = cap
    report()
"""
ACKED, MOST, GAIN = 0, 1, 16
ACKS, CAP, OTHER_GAIN = 0, 16, 17


def both(window: int = 20_000) -> Native:
    return Native(compiled(SUMS), compiled(COUNTS), window=window)


def test_a_change_waits_for_the_next_acknowledgement() -> None:
    flow = both()
    flow.acknowledge(primitives(bytes_acked=10), 50)
    flow.set_program(1)
    assert (flow.program, flow.registers[ACKED]) == (0, 10)
    assert flow.acknowledge(primitives(bytes_acked=10), 60) is None
    assert (flow.program, flow.registers[ACKS]) == (1, 41)


def test_what_was_summed_up_is_not_reported_after_a_change() -> None:
    flow = both()
    flow.acknowledge(primitives(bytes_acked=10), 50)
    flow.set_program(1)
    flow.acknowledge(primitives(bytes_acked=10), 500)
    fields = flow.acknowledge(primitives(bytes_acked=10), 501)
    assert (fields or [])[:1] == [42], "the second acknowledgement under the new program"


def test_a_change_sets_all_variables_to_their_initial_values() -> None:
    flow = both()
    flow.set_control(0, 99)
    for now_us in (50, 101):
        flow.acknowledge(primitives(bytes_acked=10), now_us)
    assert flow.registers[ACKED : MOST + 1] == [0, 20]
    assert flow.registers[GAIN] == 99
    flow.set_program(0)  # the program that runs already
    flow.acknowledge(primitives(bytes_acked=1), 200)
    assert flow.registers[ACKED : MOST + 1] == [1, 7], "also fields that no report resets"
    assert flow.registers[GAIN] == 8


def test_micros_runs_from_the_change() -> None:
    flow = both()
    assert flow.acknowledge(primitives(bytes_acked=1), 101) is not None, "Micros is 101"
    flow.set_program(0)
    assert flow.acknowledge(primitives(bytes_acked=1), 150) is None, "Micros is 0"
    assert flow.acknowledge(primitives(bytes_acked=1), 250) is None
    assert flow.acknowledge(primitives(bytes_acked=1), 251) is not None


def test_a_change_keeps_window_and_rate() -> None:
    flow = Native(
        compiled("(def (Report (a 0)))(when true (:= Cwnd 30000) (:= Rate 5000))"),
        compiled("(def (Report (a 0)))(when true (:= Report.a Cwnd) (report))"),
        window=20_000,
    )
    flow.acknowledge(primitives(), 1)
    flow.set_program(1)
    assert (flow.acknowledge(primitives(), 2) or [])[:1] == [30_000]
    assert (flow.window, flow.rate) == (30_000, 5_000)


def test_controls_set_with_a_change_come_after_the_initial_values() -> None:
    flow = both()
    flow.set_program(1)
    flow.set_control(0, 50_000)
    for now_us in (1, 2):
        flow.acknowledge(primitives(), now_us)
    assert flow.window == 50_000
    assert flow.registers[CAP : OTHER_GAIN + 1] == [50_000, 6]


def test_controls_set_before_a_change_were_the_old_programs() -> None:
    flow = both()
    flow.set_control(0, 99)
    flow.set_program(1)
    flow.acknowledge(primitives(), 1)
    assert flow.registers[CAP] == 3


def test_of_two_changes_between_acknowledgements_the_last_counts() -> None:
    flow = both()
    flow.set_program(1)
    flow.set_control(0, 50_000)
    flow.set_program(0)
    flow.acknowledge(primitives(bytes_acked=10), 1)
    assert (flow.program, flow.registers[ACKED], flow.registers[GAIN]) == (0, 10, 8)


def test_one_control_leaves_the_others() -> None:
    flow = both()
    flow.set_program(1)
    for now_us in (1, 2):
        flow.acknowledge(primitives(), now_us)
    assert flow.registers[OTHER_GAIN] == 6, "the program has added 1"
    flow.set_control(0, 9_000)
    flow.acknowledge(primitives(), 3)
    assert flow.registers[CAP : OTHER_GAIN + 1] == [9_000, 6]


def test_a_window_and_a_rate_of_zero_set_nothing() -> None:
    flow = Native(compiled("(def (Report (a 0)))(when true (:= Cwnd 0) (:= Rate 0))"), window=20_000)
    flow.acknowledge(primitives(), 1)
    assert (flow.window, flow.rate, flow.errors) == (20_000, 0, 0)


def test_a_program_that_is_empty_neither_reports_nor_fails() -> None:
    flow = Native(EMPTY, compiled(SUMS), window=20_000)
    assert flow.acknowledge(primitives(lost_pkts_sample=1), 500) is None
    assert (flow.window, flow.errors) == (20_000, 0)


class Two(Algorithm):
    programs: ClassVar = {"sums": SUMS, "counts": COUNTS}

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, int]]] = []

    def on_report(self, flow: Flow, report: Report) -> None:
        self.seen.append((report.program, dict(report.values)))
        if flow.program == "sums":
            flow.set(gain=4)
            flow.set_program("counts", cwnd_bytes=30_000, cap=7)
            flow.set(gain=6)


def agent_of(algorithm: Algorithm) -> Agent:
    agent = Agent(algorithm, all_compiled(algorithm.programs))
    agent.handle(FlowCreated(1, 0, 1000, 10_000, "10.0.0.1", "10.0.0.2"))
    return agent


def test_a_flow_changes_its_program() -> None:
    (command,) = agent_of(Two()).handle(FlowReport(1, 5, (10, 20), program=0))
    assert command == Command(1, cwnd_bytes=30_000, program=1, controls=((0, 7), (1, 6)))


def test_a_report_on_its_way_says_which_program_made_it() -> None:
    algorithm = Two()
    agent = agent_of(algorithm)
    for number, fields in ((0, (10, 20)), (0, (11, 21)), (1, (42,))):
        agent.handle(FlowReport(1, 5, fields, program=number))
    sums = [("sums", {"acked": a, "most": m}) for a, m in ((10, 20), (11, 21))]
    assert algorithm.seen == [*sums, ("counts", {"acks": 42})]


@pytest.mark.parametrize(
    ("name", "controls", "error"),
    [
        ("nope", {}, "there is no program 'nope'; the programs are: sums, counts"),
        ("counts", {"most": 1}, "the program's controls are: cap, gain"),
        ("sums", {"cap": 1}, "the program's controls are: gain"),
    ],
)
def test_names_that_are_not_the_programs_leave_reno(name: str, controls: dict[str, int], error: str) -> None:
    class Wrong(Two):
        def on_report(self, flow: Flow, report: Report) -> None:
            assert report.program == "sums"
            flow.set_program(name, **controls)

    agent = agent_of(Wrong())
    assert agent.handle(FlowReport(1, 5, (10, 20))) == [Command(1, fall_back=True)]
    assert error in agent.traceback


def file(body: str) -> OwnAlgorithm:
    return OwnAlgorithm("mine.py", f"from ccp import Algorithm\n\nclass Mine(Algorithm):\n{body}")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("    program = 'a: volatile = 0'\n    programs = {'b': ''}\n", "both `program` and `programs`"),
        ("    programs = {'a': 'x: volatile = 0\\nx += 1', 'b': 'y += 1'}\n", "program 'b': program, line 1"),
    ],
)
def test_files_with_wrong_programs_are_refused(body: str, error: str) -> None:
    own = file(body)
    with pytest.raises(UsageError, match=r"mine\.py") as caught:
        load(own, own.text)
    assert error in str(caught.value)


def test_the_table_has_a_limit() -> None:
    texts = {f"p{number}": SUMS for number in range(MAX_PROGRAMS + 1)}
    with pytest.raises(UsageError, match="1 to 16 programs, not 17"):
        all_compiled(texts)
    with pytest.raises(ProgramError, match="program 'a'"):
        all_compiled({"a": ""})


def numbers_of(given: FlowCommands) -> list[int]:
    """Return the numbers of window, rate, program and controls, then those of the first two controls."""
    _, _, _, _, *rest = _COMMAND.unpack(given.packed())
    return list(rest[:6])


def test_the_map_of_commands_numbers_each_part() -> None:
    given = FlowCommands(Command(1))
    given.add(Command(1, cwnd_bytes=5, controls=((1, 9),)))
    assert numbers_of(given) == [1, 0, 0, 1, 0, 1]
    given.add(Command(1, controls=((0, 3), (1, 8))))
    assert numbers_of(given) == [1, 0, 0, 2, 1, 2]
    given.add(Command(1, program=1, controls=((0, 2),)))
    assert numbers_of(given) == [1, 0, 1, 3, 1, 0], "the old program's controls are forgotten"
    assert given.command == Command(1, cwnd_bytes=5, program=1, controls=((0, 2),))
