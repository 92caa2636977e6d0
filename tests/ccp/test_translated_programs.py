"""The simulator's translation of programs gives the results of ccp_step, for any program."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ccp.language import (
    CONTROL,
    CWND,
    FALLTHROUGH,
    FLAG,
    INFINITE,
    LOCAL,
    MICROS,
    PRIMITIVE,
    PRIMITIVES,
    RATE,
    REPORT,
    SHOULD_REPORT,
    TEMPORARY,
    Instruction,
    Op,
    Operand,
    Program,
)
from ccp.loading import load
from ccp.names import PREFIX, SHIPPED, OwnAlgorithm
from ccp.programs import compiled
from tests.ccp.test_fold_programs import LARGEST, SUMS_LISP, SUMS_PYTHON, stream
from tests.support.agents.ccp_model import Native, primitives
from tests.support.agents.translated import Translated, operations

FOLD = Path(__file__).resolve().parents[2] / "benchmarks/ccp/fold_reno.py"
USUALLY_ZERO = (1, 2, 3, 4, 7, 14)
NOTHING = Operand(0, immediate=True)
ARITHMETIC = tuple(op for op in Op if op < Op.UNLESS)
TARGETS = (
    *(REPORT, REPORT + 1, REPORT + 2, CONTROL, FLAG, FLAG, FALLTHROUGH, SHOULD_REPORT, MICROS, CWND, RATE),
    *(TEMPORARY, TEMPORARY + 1, TEMPORARY + 2, LOCAL, LOCAL + 1, 38, PRIMITIVE),
)
SOURCES = (*TARGETS, *range(PRIMITIVE, PRIMITIVE + len(PRIMITIVES)))
NUMBERS = (0, 1, 2, 3, 8, 10, 11, 1448, 2**31, INFINITE - 1, INFINITE)
STOP = Instruction(Op.STOP, 0, NOTHING, NOTHING)
PROGRAMS = 200
"""With each seed."""


class Drawn(random.Random):
    """Draws any programs, also such as the compiler never makes, and acknowledgements for them."""

    def operand(self) -> Operand:
        if self.random() < 0.5:
            return Operand(self.choice(SOURCES))
        return Operand(self.choice(NUMBERS), immediate=True)

    def arithmetic(self) -> Instruction:
        return Instruction(self.choice(ARITHMETIC), self.choice(TARGETS), self.operand(), self.operand())

    def skip(self) -> Instruction:
        return Instruction(Op.UNLESS, 0, NOTHING, Operand(self.randint(0, 6), immediate=True))

    def condition(self) -> list[Instruction]:
        """Return a condition as the compiler makes it, and an instruction that it skips."""
        parts = [
            Instruction(self.choice((Op.GT, Op.LT, Op.EQUIV)), to, self.operand(), self.operand())
            for to in (TEMPORARY, TEMPORARY + 1)
        ]
        joined = self.choice((Op.MUL, Op.ADD, Op.BIND))
        flag = Instruction(joined, FLAG, Operand(TEMPORARY), Operand(TEMPORARY + 1))
        between = [self.arithmetic() for _ in range(self.randint(0, 1))]
        return [*parts, flag, *between, self.skip(), self.arithmetic()]

    def block(self) -> list[Instruction]:
        kind = self.randrange(3)
        if kind == 0:
            return [self.arithmetic() for _ in range(self.randint(1, 3))]
        if kind == 1:
            return self.condition()
        return self.choice(([], [self.skip()], [STOP]))

    def definition(self) -> Instruction:
        to, value = self.choice((REPORT, REPORT + 1, REPORT + 2, CONTROL)), self.choice(NUMBERS)
        return Instruction(Op.DEF, to, Operand(to), Operand(value, immediate=True))

    def program(self) -> Program:
        main = tuple(each for _ in range(self.randint(0, 8)) for each in self.block())
        initial = tuple(self.definition() for _ in range(self.randint(0, 3)))
        return Program(("a", "b"), ("c",), initial, initial[:1], main)

    def acknowledgement(self) -> list[int]:
        values = self.choices((0, 1, 3, 1448, 5000, 2**32, LARGEST), k=len(PRIMITIVES))
        if self.random() < 0.5:
            return values
        return [0 if number in USUALLY_ZERO else value for number, value in enumerate(values)]


def check_same(
    native: Native, translated: Translated, values: list[int], now_us: int, silent: bool = False
) -> None:
    """Take one acknowledgement in both, and compare."""
    expected = native.acknowledge(values, now_us, silent=silent)
    found = translated.acknowledge(values, now_us, silent=silent)
    assert found == (None if expected is None else expected[: translated.fields])
    assert translated.state == (native.window, native.rate, native.errors, native.program)


@pytest.mark.parametrize("seed", range(10))
def test_any_program_does_the_same(seed: int) -> None:
    """Drawn by a plain generator: hypothesis takes twenty times as long for one program."""
    drawn = Drawn(seed)
    for _ in range(PROGRAMS):
        table = [drawn.program() for _ in range(drawn.randint(1, 2))]
        native, translated = Native(*table, window=40_000), Translated(*table, window=40_000)
        for number in range(drawn.randint(1, 6)):
            if number % 3 == 2:
                for each in (native, translated):
                    each.set_program((number // 3 + 1) % len(table))
                    each.set_control(0, number)
            values = drawn.acknowledgement()
            check_same(native, translated, values, now_us=1000 * number, silent=number % 5 == 4)


@pytest.mark.parametrize("name", [*SHIPPED, "lisp", "python", "fold"])
def test_long_runs_of_real_programs_are_the_same(name: str) -> None:
    program = real(name)
    native, translated = Native(program, window=40_000), Translated(program, window=40_000)
    for values, now_us in stream(seed=len(name)):
        check_same(native, translated, values, now_us)


def real(name: str) -> Program:
    texts = {"lisp": SUMS_LISP, "python": SUMS_PYTHON}
    if name in texts:
        return compiled(texts[name])
    text = FOLD.read_text()
    _, programs = load(OwnAlgorithm(FOLD.name, text), text) if name == "fold" else load(PREFIX + name)
    return programs.programs[0]


@pytest.mark.parametrize("op", ARITHMETIC)
@example(left=0, right=0, old=0)
@given(st.integers(0, LARGEST), st.integers(0, LARGEST), st.sampled_from((0, 1, 7, 10**6, LARGEST)))
def test_each_operation_is_ccp_steps(op: Op, left: int, right: int, old: int) -> None:
    """Neither operand nor the target is known beforehand."""
    main = (
        Instruction(Op.BIND, REPORT, Operand(PRIMITIVE + 8), Operand(PRIMITIVE + 8)),
        Instruction(op, REPORT, Operand(PRIMITIVE), Operand(PRIMITIVE + 5)),
        Instruction(Op.BIND, SHOULD_REPORT, NOTHING, Operand(1, immediate=True)),
    )
    program = Program(("a",), (), (), (), main)
    values = primitives(bytes_acked=left, now=right, bytes_in_flight=old)
    check_same(Native(program), Translated(program), values, now_us=1)


REPORTS = Instruction(Op.BIND, SHOULD_REPORT, NOTHING, Operand(1, immediate=True))


def run_twice(*main: Instruction) -> None:
    """Check a program with one field in two acknowledgements: in the first, `Ack.now` is 1, then 0."""
    program = Program(("a",), (), (), (), main)
    native, translated = Native(program), Translated(program)
    for now in (1, 0):
        check_same(native, translated, primitives(bytes_acked=9, now=now, bytes_in_flight=7), now_us=1)


@pytest.mark.parametrize("changed", [PRIMITIVE, TEMPORARY])
def test_a_condition_has_the_values_of_its_comparison(changed: int) -> None:
    """Here they change before it is tested."""
    run_twice(
        Instruction(Op.BIND, TEMPORARY, NOTHING, Operand(PRIMITIVE)),
        Instruction(Op.GT, FLAG, Operand(changed), Operand(PRIMITIVE + 5)),
        Instruction(Op.BIND, changed, NOTHING, Operand(0, immediate=True)),
        Instruction(Op.UNLESS, 0, NOTHING, Operand(1, immediate=True)),
        Instruction(Op.ADD, REPORT, Operand(REPORT), Operand(3, immediate=True)),
        REPORTS,
    )


def test_what_is_overwritten_stays_if_an_error_comes_first() -> None:
    run_twice(
        Instruction(Op.ADD, REPORT, Operand(REPORT), Operand(PRIMITIVE)),
        Instruction(Op.ADD, LOCAL, Operand(REPORT), Operand(LOCAL)),
        Instruction(Op.BIND, REPORT + 1, NOTHING, Operand(LOCAL)),
        Instruction(Op.BIND, LOCAL, NOTHING, Operand(PRIMITIVE + 8)),
        Instruction(Op.SUB, TEMPORARY, Operand(0, immediate=True), Operand(PRIMITIVE + 5)),
        Instruction(Op.BIND, LOCAL, NOTHING, Operand(1, immediate=True)),
        Instruction(Op.BIND, REPORT, NOTHING, Operand(REPORT + 1)),
        REPORTS,
    )


def test_conditions_are_comparisons_and_what_nothing_reads_is_left_out() -> None:
    program = compiled(
        "a: report = 0\nb: report = 0\nif Ack.now > a and Ack.bytes_acked == 5:\n    b = Ack.now\n"
    )
    assert operations(program, plain=False) == 3
    assert operations(program, plain=True) == 3


def test_plain_acknowledgements_skip_what_losses_need() -> None:
    program = compiled("a: report = 0\na += Ack.bytes_acked\nif Ack.lost_pkts_sample > 0:\n    a = a // 2\n")
    assert operations(program, plain=True) == 1
    assert operations(program, plain=False) == 3


def test_many_registers_and_constants_do_the_same() -> None:
    """More registers than a flow's cache line holds, and more constants than there are registers for."""
    fields = "".join(f"f{number}: volatile = 0\n" for number in range(16))
    sums = "".join(f"f{number % 16} += Ack.now * {number + 3}\n" for number in range(60))
    many, few = compiled(f"{fields}{sums}report()\n"), compiled(SUMS_PYTHON)
    native, translated = Native(many, few, window=40_000), Translated(many, few, window=40_000)
    for number, (values, now_us) in enumerate(stream(seed=3, length=200)):
        if number % 50 == 49:
            for each in (native, translated):
                each.set_program(number // 50 % 2)
        check_same(native, translated, values, now_us)
