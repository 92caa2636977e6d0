"""Compile declarations and events to instructions. Pure."""

from __future__ import annotations

from ccp.language.instructions import (
    CONTROL,
    FALLTHROUGH,
    FLAG,
    IMPLICIT,
    LOCAL,
    MAX_FIELDS,
    MAX_INSTRUCTIONS,
    MAX_LOCALS,
    MAX_TEMPORARIES,
    PRIMITIVE,
    PRIMITIVES,
    REPORT,
    SHOULD_REPORT,
    TEMPORARY,
    Instruction,
    Op,
    Operand,
    Program,
    Variable,
)
from ccp.language.tree import (
    ONTO_TARGET,
    Assignment,
    Choice,
    Declaration,
    Event,
    Expression,
    Name,
    Number,
    Operation,
    Place,
    ProgramError,
    Source,
)

REPORT_PREFIX = "Report."
INTERNAL = {"__shouldReport": SHOULD_REPORT, "__fallthrough": FALLTHROUGH}
"""What `report` and `fallthrough` assign to."""
_TAKEN = frozenset((*IMPLICIT, *INTERNAL, *PRIMITIVES))
_NOTHING = Operand(0, immediate=True)


def generate(source: Source) -> Program:
    """Return the program. Raises ProgramError with line and column."""
    return _Generator(source).program()


class _Generator:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._variables: dict[str, Variable] = {}
        self._locals: dict[str, Place] = {}
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

    def _event(self, event: Event, last: bool) -> None:
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

    def _check_length(self, at: Place) -> None:
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
        elif isinstance(value, Choice):
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
        if isinstance(value, Number):
            return Operand(value.value, immediate=True)
        if isinstance(value, Name):
            return self._read_name(value)
        if isinstance(value, Operation) and value.op in ONTO_TARGET:
            raise value.at.error(f"{value.op.name.lower()} must be the whole right side of an assignment")
        if isinstance(value, Choice):
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

    def _temporary(self, at: Place) -> int:
        if self._temporaries == MAX_TEMPORARIES:
            raise at.error(f"this expression needs more than {MAX_TEMPORARIES} intermediate results")
        self._temporaries += 1
        return TEMPORARY + self._temporaries - 1

    def _emit(self, op: Op, to: int, left: Operand, right: Operand) -> None:
        self._code.append(Instruction(op, to, left, right))
