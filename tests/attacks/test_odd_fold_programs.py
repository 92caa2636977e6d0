"""Fold programs written to harm the run: L2, L4, L5 of the hostile review.

L2: programs whose translation needed memory exponential in their length. L4: programs and files that ended in
a traceback. L5: conditions of so many comparisons that a jump over them wrapped at 16 bits.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ccp.language import (
    FLAG,
    MAX_DEPTH,
    MAX_INSTRUCTIONS,
    MAX_NAME,
    PRIMITIVE,
    SHOULD_REPORT,
    TEMPORARY,
    Instruction,
    Op,
    Operand,
    Program,
)
from ccp.loading import load
from ccp.names import OwnAlgorithm
from ccp.programs import MAX_TEXT, all_compiled, compiled
from common.errors import UsageError
from tests.ccp.test_fold_programs import SUMS_LISP, SUMS_PYTHON
from tests.support.agents.ccp_model import Model, Native, primitives
from tests.support.agents.translated import Translated, operations

NOTHING = Operand(0, immediate=True)
NOW = Operand(PRIMITIVE + 5)
FIELD = "a: report = 0\n"


def doubled(lines: int) -> str:
    """Return a program whose condition is a conjunction of 2^lines equal comparisons."""
    more = "f = f and f\n" * lines
    return f"{FIELD}f = Ack.now > 5\n{more}if f:\n    a += 1\n    report()\n"


def conjoined(lines: int) -> str:
    """Return a program whose condition is a conjunction of different comparisons, one each line."""
    more = "".join(f"f = f and Ack.bytes_acked > {number % 7}\n" for number in range(lines))
    return f"{FIELD}f = Ack.now > 5\n{more}if f:\n    a += 1\n    report()\n"


def check_same(program: Program, acknowledgements: Iterable[list[int]]) -> int:
    """Run the program as the kernel does and as the simulator does; return how often it reported."""
    native, translated, reports = Native(program, window=40_000), Translated(program, window=40_000), 0
    for values in acknowledgements:
        expected, found = native.acknowledge(values, 1), translated.acknowledge(values, 1)
        assert found == (None if expected is None else expected[: len(program.fields)])
        assert translated.state == (native.window, native.rate, native.errors, native.program)
        reports += found is not None
    return reports


@pytest.mark.parametrize("lines", [4, 17, 237])
@pytest.mark.parametrize("plain", [False, True])
def test_conjunctions_of_conjunctions_are_translated_in_linear_space(lines: int, plain: bool) -> None:
    """L2: each line doubled the operations, and 30 lines took 128 GiB."""
    program = compiled(doubled(lines))
    assert operations(program, plain=plain) == 3


@pytest.mark.parametrize("lines", [4, 31, 32, 33, 118])
def test_a_long_conjunction_becomes_no_longer(lines: int) -> None:
    """L2: a condition of more than 32 comparisons tests their product instead."""
    program = compiled(conjoined(lines))
    assert operations(program, plain=False) <= len(program.main)
    acks = [primitives(now=now, bytes_acked=acked) for now in (0, 5, 6) for acked in range(9)]
    assert check_same(program, acks) == (2 if lines > 6 else 8 - lines + 1)


@pytest.mark.parametrize("seed", range(200))
def test_any_conjunctions_do_the_same(seed: int) -> None:
    """L2: values are read again, copied and overwritten before conditions test them."""
    drawn = random.Random(seed)
    registers = [TEMPORARY + number for number in range(drawn.randint(1, 6))]
    sources = [*registers, PRIMITIVE, PRIMITIVE + 5, PRIMITIVE + 8]
    jumps = drawn.choice((0.0, 0.05, 0.3))
    main: list[Instruction] = []
    for _ in range(drawn.randint(5, MAX_INSTRUCTIONS - 2)):
        kind, to = drawn.random(), drawn.choice([*registers, FLAG])
        left, right = Operand(drawn.choice(sources)), Operand(drawn.choice(registers))
        if kind < jumps:
            skipped = Operand(drawn.choice((1, 2, 200, 255)), immediate=True)
            main.append(Instruction(Op.UNLESS, 0, NOTHING, skipped))
        elif kind < 0.4:
            main.append(Instruction(drawn.choice((Op.GT, Op.LT, Op.EQUIV)), to, left, right))
        else:
            left = Operand(drawn.choice(registers))
            main.append(Instruction(drawn.choice((Op.MUL, Op.MUL, Op.BIND)), to, left, right))
    last = Operand(1, immediate=True)
    main += [Instruction(Op.UNLESS, 0, NOTHING, last), Instruction(Op.BIND, SHOULD_REPORT, NOTHING, last)]
    program = Program(("a",), (), (), (), tuple(main))
    assert operations(program, plain=False) <= len(main)
    check_same(program, (drawn.choices((0, 1, 3, 4), k=16) for _ in range(12)))


@pytest.mark.parametrize("lines", [15, 16, 17])
def test_the_simulator_skips_an_event_of_any_condition(lines: int) -> None:
    """L5: with 2^16 comparisons, the jump over the event wrapped, and only the simulator reported."""
    assert check_same(compiled(doubled(lines)), [primitives(now=now) for now in (0, 5, 6)]) == 1


def longest(notation: str, more: int = 0) -> str:
    """Return a program of one event that skips as much as fits, and of `more` instructions."""
    count = MAX_INSTRUCTIONS - 5 + more  # beside the field, the condition, the jump, report and fall through
    if notation == "python":
        return f"{FIELD}if Ack.now > 5:\n" + "    a += 1\n" * count + "    report()\n"
    statements = "(:= Report.a (+ Report.a 1))\n" * count
    return f"(def (Report (a 0)))(when (> Ack.now 5)\n{statements}(report) (fallthrough))"


@pytest.mark.parametrize("notation", ["python", "lisp"])
def test_the_longest_jump_is_the_same_everywhere(notation: str) -> None:
    """L5: at the bound, kernel, simulator and model agree; beyond, the compiler refuses."""
    program = compiled(longest(notation))
    assert program.length == MAX_INSTRUCTIONS
    acks = [primitives(now=now) for now in (0, 6, 5, 7)]
    assert check_same(program, acks) == 2
    native, model = Native(program, window=40_000), Model(program)
    for values in acks:
        assert native.acknowledge(values, 1) == model.acknowledge(values, 1)
    line = len(longest(notation, more=1).splitlines())
    with pytest.raises(UsageError, match=rf"line {line}, .*257 instructions.*at most 256 fit; let the agent"):
        compiled(longest(notation, more=1))


def shortened(text: str) -> str:
    """Return a test's name; some programs have 10 MB."""
    return text[:40]


def check_refused(error: pytest.ExceptionInfo[UsageError]) -> None:
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 700


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no statement"),
        ("\0", "null bytes"),
        ("a\0b: report = 0", "null bytes"),
        ("\ud800: report = 0", "surrogates"),
        ("x" * 10_000_000, f"10000000 characters, at most {MAX_TEXT}"),
        (f"{FIELD}a = {'-' * 19_000}1", f"line 2, .*more than {MAX_DEPTH} operations inside each other"),
        (f"{FIELD}\na = {'not ' * 4_900}1", f"line 3, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = {'a + ' * 4_900}a", f"line 2, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = {'a + ' * 60}a", f"line 2, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = {'a and ' * 3_300}a", f"line 2, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = {'1 if a else ' * 1_600}1", f"line 2, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = {'2 ** ' * 3_800}2", f"line 2, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = a{'.b' * 9_000}", f"line 2, .*more than {MAX_DEPTH} operations"),
        (f"{FIELD}a = {'(' * 9_000}", "line 2, .*too many nested parentheses"),
        (f"{FIELD}if a:\n    a = 1\n" + "elif a: a = 1\n" * 1_000, "elif and else are not supported"),
        (f"{FIELD}a = {'9' * 5_000}", "digits"),
        (f"{FIELD}a = 0x{'f' * 5_000}", "integers from 0 to 4294967295"),
        (f"{FIELD}a = 4294967296", "integers from 0"),
        (f"{FIELD}a = 1e400", "integers from 0"),
        (f"{FIELD}a = '{'b' * 15_000}'", "integers from 0"),
        (f"{FIELD}a = \u0663", "line 2"),
        (f"{FIELD}a = (b := 1)", "NamedExpr is not part"),
        (f"{FIELD}a = await a", "Await is not part"),
        (f"{FIELD}a = min(*a)", "with two arguments"),
        (f"{FIELD}a = min(a, *a)", "Starred is not part"),
        (f"{FIELD}a, b = 1, 2", "a name is expected"),
        (f"{FIELD}import os", "a statement must be"),
        (f"{FIELD}if a:\n    b: report = 0", "a statement must be"),
        (f"{FIELD}a: report", "line 2, .*must be a number"),
        (f"{FIELD}a.b: report = 0", "NAME: KIND"),
        (f"{FIELD}a: control = 0", "line 2, .*declared already"),
        ("__shouldReport: report = 0\nreport()", "declared already"),
        (f"{'n' * 10_000}: report = 0", f"1 to {MAX_NAME} printable characters"),
        (f"{FIELD}a = {'n' * 10_000}", f"line 2, .*1 to {MAX_NAME} printable characters"),
        ("(", "not closed"),
        ("()", "begins with"),
        ("(def)", "no statement"),
        (f"(def) {'(' * 9_000}", f"more than {MAX_DEPTH} operations"),
        ("(def (a \u0663)) (when true (report))", "integers from 0"),
        (f"(def (a {'9' * 5_000})) (when true (report))", "1 to 64 printable"),
        ("(def (Report (a\x1b[2J 0))) (when true (report))", "1 to 64 printable"),
        ("(def (Report (Report. 0))) (when true (report))", "1 to 64 printable"),
        ("(def (Report (Ack.now 0))) (when true (report))", "declared already"),
        ("(def (Report (a 0))) (when true)", "an event is"),
        ("(def (Report (a 0))) (when true ())", "a statement is"),
        ("(def (Report (a 0))) (when () (report))", "unknown operation"),
        ("(def (Report (a 0))) (when true (:= a (if 1)))", "takes two values"),
        ("(def (Report (a 0))) (when true (:= a (+ 1 (if 1 2))))", "must be the whole right side"),
    ],
    ids=shortened,
)  # fmt: skip
def test_odd_programs_are_refused_in_one_line(text: str, what: str) -> None:
    """L4."""
    with pytest.raises(UsageError, match=what) as error:
        compiled(text)
    check_refused(error)


def mine(body: str, base: str = "Algorithm") -> str:
    """Return a user's file whose class has this body."""
    imports = "from ccp import Algorithm\nfrom ccp.portus import PortusAlgorithm\n"
    return f"{imports}\nclass Mine({base}):\n    {body}\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (mine("program = 5"), "`program` must be text, not int"),
        (mine("program = b'a: report = 0'"), "`program` must be text, not bytes"),
        (mine("programs = 5"), "`programs` must be a dictionary"),
        (mine("programs = {'a': 1}"), "`programs` must be a dictionary"),
        (mine("programs = {None: None, (1, 2): []}"), "`programs` must be a dictionary"),
        (mine("programs = {'': ''}"), "a program's name has"),
        (mine("programs = {'a' * 10**6: ''}"), "a program's name has"),
        (mine("programs = {str(n): 'a: report = 0\\nreport()' for n in range(17)}"), "1 to 16 programs"),
        (mine("programs = {'odd': 'a: report = 0\\na = b'}"), "program 'odd': program, line 2"),
        (mine("program = 'a: report = 0'\n    programs = {'b': 'a: report = 0'}"), "both `program` and"),
        (mine("program = 'x' * 10_000_000"), "10000000 characters"),
        (mine("program = '\\0'"), "null bytes"),
        (mine("command = (5,)", "PortusAlgorithm"), "command must be a tuple"),
        (mine("command = '/bin/sh'", "PortusAlgorithm"), "command must be a tuple"),
        (mine("command = ('/bin/\\0sh',)", "PortusAlgorithm"), "absolute path of a program"),
        (mine("command = ('/' + 'x' * 10**6,)", "PortusAlgorithm"), "absolute path of a program"),
        (mine("command = ('/bin/sh',)\n    __init__ = max", "PortusAlgorithm"), "raised TypeError"),
        ("raise SystemExit('bye')", "running it raised SystemExit"),
        ("raise ValueError('x' * 10**6)", "running it raised ValueError.'xxx"),
        ("class Odd(Exception):\n    def __repr__(self): return 'a\\nb'\nraise Odd", r"raised a\\nb"),
        (f"a = {'-' * 19_000}1", "running it raised"),
        ("a = '\0'", "running it raised"),
        ("def f(): f()\nf()", "running it raised RecursionError"),
        ("del __name__", "has 0 classes"),
    ],
    ids=shortened,
)  # fmt: skip
def test_odd_files_are_refused_in_one_line(text: str, what: str) -> None:
    """L4."""
    with pytest.raises(UsageError, match=what) as error:
        load(OwnAlgorithm("mine.py", text), text)
    assert str(error.value).startswith("mine.py")
    check_refused(error)


WORDS = """
( ) (def (when (report) (fallthrough) := Report. volatile +infinity true !if if else elif and or not : = += **
// min( later( ewma( report() lambda for in [ ] { } * , . -> await f'{ ' \" # \\ 0 1 -1 1or 4294967295
4294967296 1e9 0x 1_0 a acked Ack.now Micros __shouldReport \0 \x1b \ud800 \u0663 \u00b2 \ufeff
"""
SPACES = (" ", "\t", "\n", "\n    ", "\r", "\x0c", "\u2028")
LONG = ("9" * 99, "n" * 99, "(" * 60, "not " * 60, "a = a and a\n" * 60, '"""')
PIECES = (*WORDS.split(), *SPACES, *LONG)
SPANS = st.tuples(st.integers(0, 700), st.integers(0, 20), st.sampled_from(PIECES) | st.text(max_size=4))


@given(st.sampled_from((SUMS_LISP, SUMS_PYTHON, doubled(5), longest("lisp"))), st.lists(SPANS, max_size=6))
@example(SUMS_PYTHON, [(0, 0, "not " * 4_000)])
def test_a_mutated_program_compiles_or_is_refused(text: str, spans: list[tuple[int, int, str]]) -> None:
    """L4: each span of the text becomes something else."""
    for start, length, piece in spans:
        text = text[:start] + piece + text[start + length :]
    try:
        program = compiled(text)
        all_compiled({"only": text})
    except UsageError as error:
        assert len(str(error).splitlines()) == 1
        return
    assert program.length <= MAX_INSTRUCTIONS
    assert len(program.packed()) > program.length
