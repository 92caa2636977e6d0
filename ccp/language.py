"""The language of datapath programs: syntax tree, instructions, and the generator between them. Pure.

Both notations (`lisp.py`, `python_syntax.py`) become one tree. The binary form of instructions is `struct
ccp_program` of fabric/ccp/datapath.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from common.errors import UsageError

MAX_INSTRUCTIONS = 256
MAX_FIELDS = 16
"""Fields of a report, and as many control variables."""
MAX_TEMPORARIES = 16
MAX_LOCALS = 8
INFINITE = 0xFFFFFFFF
"""As an initial value: the largest number of 64 bits. As `Flow.rtt_sample_us`: no sample."""
MAX_NUMBER = 0xFFFFFFFF
REPORT, CONTROL, TEMPORARY, LOCAL, PRIMITIVE = 0, 16, 40, 56, 64
"""First register of each kind."""
FLAG, FALLTHROUGH, SHOULD_REPORT, MICROS, CWND, RATE = range(32, 38)
IMPLICIT = {"Micros": MICROS, "Cwnd": CWND, "Rate": RATE}
PRIMITIVES = (
    "Ack.bytes_acked", "Ack.bytes_misordered", "Ack.ecn_bytes", "Ack.ecn_packets", "Ack.lost_pkts_sample",
    "Ack.now", "Ack.packets_acked", "Ack.packets_misordered", "Flow.bytes_in_flight", "Flow.bytes_pending",
    "Flow.packets_in_flight", "Flow.rate_incoming", "Flow.rate_outgoing", "Flow.rtt_sample_us",
    "Flow.was_timeout", "Flow.report_us",
    "Hop.queue_bytes", "Hop.rate", "Hop.link_rate", "Hop.interval_ns",
)  # fmt: skip
"""In the order of their registers. The first 15 are libccp's."""
OF_SWITCHES = frozenset(range(PRIMITIVE + PRIMITIVES.index("Hop.queue_bytes"), PRIMITIVE + len(PRIMITIVES)))
"""Registers of what switches measure, which only the simulator has."""
_HEAD = struct.Struct("<4I")
_INSTRUCTION = struct.Struct("<4B2I")
SIZE = _HEAD.size + MAX_INSTRUCTIONS * _INSTRUCTION.size


class Op(IntEnum):
    """Operations by their numbers in libccp; the last two are ours."""

    ADD, BIND, DEF, DIV, EQUIV, EWMA, GT, IF, LT, MAX, MAXWRAP, MIN, MUL, NOTIF, SUB = range(15)
    UNLESS, STOP = 32, 33


@dataclass(frozen=True)
class Operand:
    """A register, or a number of 32 bits."""

    value: int
    immediate: bool = False


@dataclass(frozen=True)
class Instruction:
    op: Op
    to: int
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Variable:
    """A field of the report or a control variable: its register, and whether each report resets it."""

    register: int
    volatile: bool


@dataclass(frozen=True)
class Program:
    """A compiled program: `fields` and `controls` by name, and the three parts of its instructions."""

    fields: tuple[str, ...]
    controls: tuple[str, ...]
    initial: tuple[Instruction, ...]
    reset: tuple[Instruction, ...]
    main: tuple[Instruction, ...]

    @property
    def length(self) -> int:
        """The number of all instructions; the datapath has room for MAX_INSTRUCTIONS."""
        return len(self.initial) + len(self.reset) + len(self.main)

    @property
    def reads_switches(self) -> bool:
        """Whether it reads what switches write into packets."""
        operands = (operand for each in self.main for operand in (each.left, each.right))
        return any(not each.immediate and each.value in OF_SWITCHES for each in operands)

    def packed(self) -> bytes:
        """Return the binary form, always `SIZE` bytes."""
        initial = len(self.initial)
        reset = initial + len(self.reset)
        code = _packed([*self.initial, *self.reset, *self.main])
        return (_HEAD.pack(len(self.fields), initial, reset, self.length) + code).ljust(SIZE, b"\0")


def _packed(instructions: Sequence[Instruction]) -> bytes:
    return b"".join(
        _INSTRUCTION.pack(
            each.op, each.to, each.left.immediate, each.right.immediate, each.left.value, each.right.value
        )
        for each in instructions
    )


MAX_DEPTH = 50
"""Operations inside each other: more than the intermediate results allow, less than Python's stack."""
MAX_NAME = 64
"""Characters of a name."""


@dataclass(frozen=True)
class Position:
    """A place in the program's text, counted from 1."""

    line: int
    column: int

    def error(self, what: str) -> ProgramError:
        """Return the error with this place."""
        return ProgramError(f"program, line {self.line}, column {self.column}: {what}")

    def name(self, text: str) -> str:
        """Return the name. Raises ProgramError for one that messages cannot quote."""
        if not 1 <= len(text) <= MAX_NAME or not text.isprintable():
            raise self.error(f"a name has 1 to {MAX_NAME} printable characters")
        return text

    def too_deep(self) -> ProgramError:
        """Return the error of an expression here with too many operations inside each other."""
        return self.error(
            f"more than {MAX_DEPTH} operations inside each other; split the expression into assignments"
        )


class ProgramError(UsageError):
    """A program of the datapath is wrong; the message has the line and the column."""


@dataclass(frozen=True)
class Name:
    text: str
    at: Position


@dataclass(frozen=True)
class Literal:
    value: int
    at: Position


@dataclass(frozen=True)
class Operation:
    """`left op right`. EWMA, IF and NOTIF also read or keep what they are assigned to."""

    op: Op
    left: Expression
    right: Expression
    at: Position


@dataclass(frozen=True)
class Conditional:
    """`then` where `condition` is not 0, else `otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    at: Position


Expression = Name | Literal | Operation | Conditional
ONTO_TARGET = frozenset({Op.EWMA, Op.IF, Op.NOTIF})
"""Operations that must be assigned to a variable."""


@dataclass(frozen=True)
class Declaration:
    """A variable with its initial value. `report`: a field of the report, otherwise a control variable."""

    name: str
    report: bool
    volatile: bool
    initial: int
    at: Position


@dataclass(frozen=True)
class Assignment:
    target: Name
    value: Expression


@dataclass(frozen=True)
class WhenClause:
    """What happens when `condition` is not 0. The events after it run only if it falls through."""

    condition: Expression
    body: tuple[Assignment, ...]


@dataclass(frozen=True)
class SyntaxTree:
    declarations: tuple[Declaration, ...]
    events: tuple[WhenClause, ...]


REPORT_PREFIX = "Report."
INTERNAL = {"__shouldReport": SHOULD_REPORT, "__fallthrough": FALLTHROUGH}
"""What `report` and `fallthrough` assign to."""
_TAKEN = frozenset((*IMPLICIT, *INTERNAL, *PRIMITIVES))
_NOTHING = Operand(0, immediate=True)


def generate(source: SyntaxTree) -> Program:
    """Return the program. Raises ProgramError with line and column."""
    return _Generator(source).program()


class _Generator:
    def __init__(self, source: SyntaxTree) -> None:
        self._source = source
        self._variables: dict[str, Variable] = {}
        self._locals: dict[str, Position] = {}
        self._read: set[str] = set()
        self._code: list[Instruction] = []
        self._temporaries = 0

    def program(self) -> Program:
        fields = self._declare([d for d in self._source.declarations if d.report], REPORT, "report fields")
        controls = self._declare([d for d in self._source.declarations if not d.report], CONTROL, "controls")
        if not self._source.events:
            raise ProgramError("program: it has no statement; measure something and report it")
        for number, event in enumerate(self._source.events):
            self._event(event, last=number + 1 == len(self._source.events))
        self._check_locals()
        initial = [(self._definition(d), d.volatile) for d in self._source.declarations]
        return Program(
            fields,
            controls,
            tuple(definition for definition, _ in initial),
            tuple(definition for definition, volatile in initial if volatile),
            tuple(self._code),
        )

    def _declare(self, declared: list[Declaration], first: int, what: str) -> tuple[str, ...]:
        for number, each in enumerate(declared):
            if number == MAX_FIELDS:
                raise each.at.error(f"more than {MAX_FIELDS} {what}")
            if each.name in self._variables or each.name in _TAKEN:
                raise each.at.error(f"{each.name} is declared already")
            self._variables[each.name] = Variable(first + number, each.volatile)
        return tuple(each.name for each in declared)

    def _definition(self, declaration: Declaration) -> Instruction:
        register = self._variables[declaration.name].register
        return Instruction(Op.DEF, register, Operand(register), Operand(declaration.initial, immediate=True))

    def _event(self, event: WhenClause, last: bool) -> None:
        self._temporaries = 0
        self._assign(FLAG, event.condition)
        jump = len(self._code)
        self._emit(Op.UNLESS, 0, _NOTHING, _NOTHING)
        for assignment in event.body:
            self._assignment(assignment)
            self._check_length(assignment.target.at)
        if not last:
            self._emit(Op.STOP, 0, _NOTHING, _NOTHING)
            self._check_length(event.body[-1].target.at)
        skipped = Operand(len(self._code) - jump - 1, immediate=True)
        self._code[jump] = Instruction(Op.UNLESS, 0, _NOTHING, skipped)

    def _check_length(self, at: Position) -> None:
        """Raise ProgramError if the code up to here does not fit. No jump is then longer than the program."""
        length = len(self._source.declarations) + sum(d.volatile for d in self._source.declarations)
        length += len(self._code)
        if length > MAX_INSTRUCTIONS:
            raise at.error(
                f"the program has {length} instructions up to here and at most {MAX_INSTRUCTIONS} fit; "
                "let the agent compute more of it from the reports"
            )

    def _assignment(self, assignment: Assignment) -> None:
        self._temporaries = 0
        target = assignment.target
        if target.text in PRIMITIVES:
            raise target.at.error(f"{target.text} is measured and cannot be set")
        known = target.text in INTERNAL or self._register(target.text) is not None
        if known:
            self._assign(self._target(target), assignment.value)
            return
        if "." in target.text:
            raise target.at.error(f"unknown name {target.text}")
        value = self._value(assignment.value)  # before the name exists: it cannot read itself
        self._emit(Op.BIND, self._new_local(target), value, value)

    def _new_local(self, target: Name) -> int:
        if len(self._locals) == MAX_LOCALS:
            raise target.at.error(f"more than {MAX_LOCALS} variables beside the declared ones")
        register = LOCAL + len(self._locals)
        self._locals[target.text] = target.at
        self._variables[target.text] = Variable(register, volatile=False)
        return register

    def _check_locals(self) -> None:
        for name, at in self._locals.items():
            if name not in self._read:
                raise at.error(f"{name} is neither declared nor read; declare it, e.g. {name}: volatile = 0")

    def _target(self, name: Name) -> int:
        register = INTERNAL.get(name.text)
        if register is None:
            register = self._register(name.text)
        if register is None:
            raise name.at.error(f"unknown name {name.text}")
        return register

    def _register(self, name: str) -> int | None:
        if name in IMPLICIT:
            return IMPLICIT[name]
        variable = self._variables.get(name.removeprefix(REPORT_PREFIX))
        return None if variable is None else variable.register

    def _assign(self, to: int, value: Expression) -> None:
        """Emit instructions that leave `value` in the register `to`."""
        if isinstance(value, Operation):
            left, right = self._value(value.left), self._value(value.right)
            self._emit(value.op, to, left, right)
        elif isinstance(value, Conditional):
            condition = self._value(value.condition)
            then, otherwise = self._value(value.then), self._value(value.otherwise)
            chosen = self._temporary(value.at)
            self._emit(Op.BIND, chosen, otherwise, otherwise)
            self._emit(Op.IF, chosen, condition, then)
            self._emit(Op.BIND, to, Operand(chosen), Operand(chosen))
        else:
            operand = self._value(value)
            self._emit(Op.BIND, to, operand, operand)

    def _value(self, value: Expression) -> Operand:
        if isinstance(value, Literal):
            return Operand(value.value, immediate=True)
        if isinstance(value, Name):
            return self._read_name(value)
        if isinstance(value, Operation) and value.op in ONTO_TARGET:
            raise value.at.error(f"{value.op.name.lower()} must be the whole right side of an assignment")
        if isinstance(value, Conditional):
            result = self._temporary(value.at)
            self._assign(result, value)
            return Operand(result)
        left, right = self._value(value.left), self._value(value.right)
        result = self._temporary(value.at)
        self._emit(value.op, result, left, right)
        return Operand(result)

    def _read_name(self, name: Name) -> Operand:
        if name.text in PRIMITIVES:
            return Operand(PRIMITIVE + PRIMITIVES.index(name.text))
        register = self._register(name.text)
        if register is None:
            raise name.at.error(f"unknown name {name.text}")
        self._read.add(name.text)
        return Operand(register)

    def _temporary(self, at: Position) -> int:
        if self._temporaries == MAX_TEMPORARIES:
            raise at.error(f"this expression needs more than {MAX_TEMPORARIES} intermediate results")
        self._temporaries += 1
        return TEMPORARY + self._temporaries - 1

    def _emit(self, op: Op, to: int, left: Operand, right: Operand) -> None:
        self._code.append(Instruction(op, to, left, right))
