"""Fold programs: parsing, several programs of one agent, and the use of windows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import ClassVar

import pytest

from ccp.agent import Agent, FlowCreated, FlowReport
from ccp.algorithm import Algorithm, Command, Flow, Report
from ccp.language import PRIMITIVES, SIZE, ProgramError
from ccp.loading import load
from ccp.names import PREFIX, SHIPPED, OwnAlgorithm
from ccp.programs import EMPTY, MAX_PROGRAMS, MAX_TEXT, all_compiled, compiled
from common.errors import UsageError
from common.text import printable_json
from engines.emulation.congestion.agent import _COMMAND, FlowCommands
from model.spec import LinkSpec, RunSpec, TransportSpec
from tests.support.agents.ccp_model import Model, Native, primitives

LARGEST = 2**64 - 1
SUMS_LISP = """
(def (Report (volatile acked 0) (volatile rtt +infinity) (inflight 7)) (gain 8))
(when true
  (:= Report.acked (+ Report.acked Ack.bytes_acked))
  (:= Report.rtt (min Report.rtt Flow.rtt_sample_us))
  (fallthrough))
(when (|| Flow.was_timeout (> Ack.lost_pkts_sample 0))
  (:= Micros 0) (report))
(when (> Micros 100)
  (:= Micros 0)
  (report))
"""
SUMS_PYTHON = """
acked: volatile = 0
rtt: volatile = infinity
inflight: report = 7
gain: control = 8

acked += Ack.bytes_acked
rtt = min(rtt, Flow.rtt_sample_us)
if Flow.was_timeout or Ack.lost_pkts_sample > 0:
    Micros = 0
    report()
if Micros > 100:
    Micros = 0
    report()
"""


def reported(body: str, **measured: int) -> list[int] | None:
    """Return what one acknowledgement reports under a program of one event."""
    program = compiled(f"(def (Report (volatile x 5) (volatile y 0)))(when true {body} (report))")
    return Native(program, window=10_000).acknowledge(primitives(**measured), 1)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(+ 2 3)", 5), ("(- 3 2)", 1), ("(* 4 5)", 20), ("(/ 9 2)", 4), ("(== 2 2)", 1), ("(> 2 2)", 0),
        ("(< 1 2)", 1), ("(max 2 7)", 7), ("(min 2 7)", 2), ("(if 1 9)", 9), ("(if 0 9)", 5),
        ("(!if 0 9)", 9), ("(!if 3 9)", 5), ("(ewma 8 15)", 7), ("(wrapped_max 4294967290 4)", 4),
        ("(wrapped_max 4 4294967290)", 4), ("(wrapped_max 0 9)", 9), ("(&& 1 0)", 0), ("(|| 1 0)", 1),
    ],
)  # fmt: skip
def test_each_operation_is_libccps(expression: str, value: int) -> None:
    fields = reported(f"(:= Report.x {expression}) (:= Report.y (ewma 8 15))")
    assert fields is not None
    assert fields[:2] == [value, 15], "the first value of an average is taken whole"


@pytest.mark.parametrize("expression", ["(/ 1 Report.y)", "(- 1 2)", "(+ Ack.now 1)", "(* Ack.now 3)"])
def test_an_error_ends_the_program_of_this_acknowledgement(expression: str) -> None:
    program = compiled(
        f"(def (Report (volatile y 0)))(when true (:= Cwnd 50000) (:= Report.y {expression}) (report))"
    )
    flow = Native(program, window=10_000)
    assert flow.acknowledge(primitives(now=LARGEST), 1) is None
    assert (flow.errors, flow.window) == (1, 10_000)


def test_an_event_without_fallthrough_is_the_last() -> None:
    first = "(when (> Ack.now 1) (:= Report.a 1) {}(report))"
    text = f"(def (Report (a 0) (b 0))) {first} (when true (:= Report.b 1) (report))"
    ends, goes_on = Native(compiled(text.format(""))), Native(compiled(text.format("(fallthrough)")))
    assert (ends.acknowledge(primitives(now=2), 1) or [])[:2] == [1, 0]
    assert (goes_on.acknowledge(primitives(now=2), 1) or [])[:2] == [1, 1]
    assert (ends.acknowledge(primitives(now=1), 2) or [])[:2] == [1, 1]


def test_reports_reset_what_is_volatile() -> None:
    flow = Native(compiled(SUMS_LISP))
    assert flow.acknowledge(primitives(bytes_acked=10, rtt_sample_us=50), 50) is None
    assert (flow.acknowledge(primitives(bytes_acked=7, rtt_sample_us=60), 101) or [])[:3] == [17, 50, 7]
    assert (flow.acknowledge(primitives(lost_pkts_sample=1, rtt_sample_us=9), 150) or [])[:3] == [0, 9, 7]
    assert flow.acknowledge(primitives(bytes_acked=1, rtt_sample_us=9), 250) is None  # Micros began at 150
    assert (flow.acknowledge(primitives(bytes_acked=1, rtt_sample_us=8), 251) or [])[:3] == [2, 8, 7]


def test_windows_are_set_and_clipped() -> None:
    flow = Native(compiled("(def (Report (a 0)))(when true (:= Cwnd Ack.bytes_acked))"), window=5000)
    for acked, window in ((5123, 5123), (1, 2000), (LARGEST, 2**20 * 1000)):
        flow.acknowledge(primitives(bytes_acked=acked), 1)
        assert flow.window == window


def stream(seed: int, length: int = 2000) -> list[tuple[list[int], int]]:
    """Return random acknowledgements, some with losses, timeouts and huge numbers."""
    rng = random.Random(seed)
    now_us, acks = 0, []
    for _ in range(length):
        now_us += rng.randint(0, 400)
        values = [rng.choice((0, 1, rng.randint(0, 3000), rng.randint(0, LARGEST))) for _ in PRIMITIVES]
        if rng.random() < 0.8:
            values = primitives(
                bytes_acked=1448 * rng.randint(0, 3), rtt_sample_us=rng.randint(100, 900), now=now_us,
                lost_pkts_sample=rng.random() < 0.02, was_timeout=rng.random() < 0.01, report_us=500,
                rate_incoming=rng.randint(0, 10**9), rate_outgoing=rng.randint(0, 10**9),
            )  # fmt: skip
        acks.append((values, now_us))
    return acks


@pytest.mark.parametrize("name", [*SHIPPED, "lisp", "python"])
def test_the_header_does_what_the_model_does(name: str) -> None:
    texts = {"lisp": SUMS_LISP, "python": SUMS_PYTHON}
    program = compiled(texts[name]) if name in texts else load(PREFIX + name)[1].programs[0]
    native, model, reports = Native(program), Model(program), 0
    for values, now_us in stream(seed=len(name)):
        expected = model.acknowledge(values, now_us)
        assert native.acknowledge(values, now_us) == expected
        reports += expected is not None
    assert native.errors == model.errors
    assert reports > 50


def test_both_notations_report_the_same() -> None:
    lisp, python = Native(compiled(SUMS_LISP)), Native(compiled(SUMS_PYTHON))
    for values, now_us in stream(seed=9):
        assert lisp.acknowledge(values, now_us) == python.acknowledge(values, now_us)


def test_without_an_agent_the_window_is_a_sawtooth() -> None:
    flow = Native(compiled(SUMS_LISP), window=40_000)
    for now_us in range(1, 41):  # one window of acknowledgements
        flow.acknowledge(primitives(bytes_acked=1000), now_us, silent=True)
    assert 40_900 <= flow.window <= 41_000
    flow.acknowledge(primitives(lost_pkts_sample=2), 1000, srtt_us=100, silent=True)
    assert flow.window // 1000 == 20
    flow.acknowledge(primitives(lost_pkts_sample=2), 1050, srtt_us=100, silent=True)
    assert flow.window // 1000 == 20  # once per round trip
    flow.time_out()
    assert flow.window == 1000
    flow.acknowledge(primitives(bytes_acked=1000), 2000, srtt_us=100, silent=True)
    assert flow.window == 2000  # slow start


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("(def (Report (a 0)))\n(when true (:= Report.b 1))", "line 2, column 16", "unknown name Report.b"),
        ("(def (Report (a 0))\n", "line 1, column 1", "not closed"),
        ("(def (a 0)))", "line 1, column 12", "closes nothing"),
        ("(def (Report (a -1)))", "line 1, column 17", "integers"),
        ("(def (Report (a 0)))\n(when true (:= Ack.now 1))", "line 2, column 16", "cannot be set"),
        ("(def (Report (a 0)))\n(when true (:= Report.a (^ 1 2)))", "line 2, column 25", "unknown operation"),
        ("a: volatile = 0\nif a > 1:\n    a = 4 ** 2\n", "line 3, column 9", "no operation Pow"),
        ("a: volatile = 0\na += nope\n", "line 2, column 6", "unknown name nope"),
        ("a: volatile = 0\nb = a\n", "line 2, column 1", "neither declared nor read"),
        ("a: sum = 0\n", "line 1, column 1", "NAME: KIND = NUMBER"),
        ("a: volatile = 0\na = 1.5\n", "line 2, column 5", "integers"),
        ("a: volatile = 0\na = -1\n", "line 2, column 5", "negative"),
        ("a: volatile = 0\nif a:\n    if a:\n        a = 1\n", "line 3, column 5", "not inside another"),
        ("a: volatile = 0\nfor\n", "line 2, column 4", "invalid syntax"),
        ("a: volatile = 0\na: volatile = 0\na = 1\n", "line 2, column 1", "declared already"),
    ],
)
def test_errors_name_the_place(text: str, place: str, what: str) -> None:
    with pytest.raises(ProgramError) as caught:
        compiled(text)
    assert place in str(caught.value)
    assert what in str(caught.value)


def test_programs_have_a_limit() -> None:
    longest = "a: volatile = 0\n" + "a += 1\n" * 249
    assert compiled(longest).length <= 256
    assert len(compiled(longest).packed()) == SIZE
    with pytest.raises(ProgramError, match="instructions"):
        compiled(longest + "a += 1\n" * 4)
    with pytest.raises(ProgramError, match="characters"):
        compiled("#" * (MAX_TEXT + 1))
    fields = "".join(f"f{i}: volatile = 0\n" for i in range(17))
    with pytest.raises(ProgramError, match=r"line 17.*more than 16 report fields"):
        compiled(fields + "f1 = 1\n")


def test_the_example_in_the_docs_loads() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/ccp.md"
    text = page.read_text().split("```python\n")[1].split("```")[0]
    _, programs = load(OwnAlgorithm("mine.py", text), text)
    assert programs.programs[0].fields == ("acked", "lost", "timeout")


@pytest.mark.parametrize("first", ["", "from __future__ import annotations\n"])
def test_a_users_file_may_have_dataclasses(first: str) -> None:
    text = first + (
        "from dataclasses import dataclass\nfrom ccp import Algorithm\n\n@dataclass\nclass State:\n"
        "    a: int = 0\n\n"
        'class Mine(Algorithm):\n    program = "a: volatile = 0\\na += 1"\n'
    )
    assert load(OwnAlgorithm("mine.py", text), text)[1].programs[0].fields == ("a",)


def test_a_spec_with_a_users_file_survives_storing() -> None:
    text = "# caf\u00e9 \u202e\n\tclass\x00"
    spec = RunSpec(LinkSpec(1.0), transport=TransportSpec(1, OwnAlgorithm("mine.py", text)))
    data = json.dumps(spec.to_json())
    stored = RunSpec.from_json(printable_json(json.loads(data), data.encode()))
    assert stored == spec
    assert stored.content_hash() == spec.content_hash()
    assert stored.transport.algorithm_text == text


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


MSS, RTT_US, ROUND_TRIPS = 1000, 50, 40
EACH_ACKNOWLEDGEMENT_US = 1


def window_after(name: str, share: float, packets: int) -> float:
    """Return the window in packets after ROUND_TRIPS, each with one acknowledgement for `share` of it."""
    algorithm, programs = load(name)
    agent, window, number = Agent(algorithm, programs), packets * MSS, 1
    flow = Native(programs.programs[0], window=window)
    agent.handle(FlowCreated(number, 0, MSS, window, "10.0.0.1", "10.0.0.2"))
    for now_us in range(RTT_US, RTT_US * (ROUND_TRIPS + 1), RTT_US):
        acked = int(window * share)
        of_all = primitives(
            bytes_acked=acked, rtt_sample_us=RTT_US, now=now_us, report_us=EACH_ACKNOWLEDGEMENT_US
        )
        fields = flow.acknowledge(of_all, now_us, mss=MSS)
        assert fields is not None, "an acknowledgement without a report"
        for command in agent.handle(FlowReport(number, now_us, fields)):
            window = int(command.cwnd_bytes or window)
    return window / MSS


@pytest.mark.parametrize("name", ["ccp:reno", "ccp:cubic", "ccp:aggregate"])
def test_a_window_grows_whose_last_packet_is_acknowledged_with_its_first(name: str) -> None:
    """Receivers that merge segments acknowledge a small window at once: nothing is in flight then."""
    assert window_after(name, share=1.0, packets=2) > 4


@pytest.mark.parametrize("name", ["ccp:reno", "ccp:cubic", "ccp:aggregate"])
def test_a_window_stays_of_which_the_flow_uses_less_than_half(name: str) -> None:
    assert window_after(name, share=0.4, packets=20) == 20
