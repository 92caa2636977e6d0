"""Programs that agents of portus install, as programs of our datapath. Pure.

libccp runs the instructions of an event's condition, then those of its body if the condition holds, and ends
after the first event that does not fall through. Our datapath has one instruction for each of the two.
"""

from __future__ import annotations

from ccp.language.instructions import (
    MAX_INSTRUCTIONS,
    REPORT,
    Instruction,
    Op,
    Operand,
    Program,
)
from ccp.portus import messages
from ccp.portus.messages import IMMEDIATE, VOLATILE_CONTROL, VOLATILE_REPORT, Install, Register
from common.errors import UsageError

_NOTHING = Operand(0, immediate=True)
_LIBCCPS = frozenset(op for op in Op if op < Op.UNLESS)
_VOLATILE = (VOLATILE_REPORT, VOLATILE_CONTROL)
_INFINITE = (0x3FFFFFFF, 0xFFFFFFFF)
"""Initial values by which libccp and portus mean the largest number of 32 bits (libccp, reset_state)."""


def translated(install: Install) -> Program:
    """Return the program. Raises UsageError for one that our datapath cannot run."""
    definitions = [each for each in install.instructions if each.op == Op.DEF]
    initial = [_definition(each) for each in definitions]
    reset = [_definition(each) for each in definitions if each.to.kind in _VOLATILE]
    main: list[Instruction] = []
    for event in install.events:
        body = [*_chosen(install, event.body), Instruction(Op.STOP, 0, _NOTHING, _NOTHING)]
        skipped = Operand(len(body), immediate=True)
        main += [*_chosen(install, event.flag), Instruction(Op.UNLESS, 0, _NOTHING, skipped), *body]
    names = _names([each.to for each in definitions])
    program = Program(*names, tuple(initial), tuple(reset), tuple(main))
    if program.length > MAX_INSTRUCTIONS:
        raise UsageError(
            f"an agent of portus installs {program.length} instructions; at most {MAX_INSTRUCTIONS} fit"
        )
    return program


def _definition(instruction: messages.Instruction) -> Instruction:
    """Return the instruction that sets an initial value. Ours takes infinity for 64 bits, libccp for 32."""
    _, value = _operand(instruction.left), _operand(instruction.right)
    if value.immediate and value.value in _INFINITE:
        value = Operand(_INFINITE[-1], immediate=True)
    return Instruction(Op.BIND, instruction.to.ours, value, value)


def _names(defined: list[Register]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names of the report's fields and of the controls: the agent knows them by number."""
    fields = [each.number for each in defined if each.ours < REPORT + 16]
    controls = [each.number for each in defined if each.ours >= REPORT + 16]
    return tuple(f"field{n}" for n in range(_room(fields))), tuple(
        f"control{n}" for n in range(_room(controls))
    )


def _room(numbers: list[int]) -> int:
    return max(numbers, default=-1) + 1


def _chosen(install: Install, places: range) -> list[Instruction]:
    if places.stop > len(install.instructions):
        raise UsageError(
            "an agent of portus installs an event with instructions that the program does not have"
        )
    return [_translated(install.instructions[place]) for place in places]


def _translated(instruction: messages.Instruction) -> Instruction:
    if instruction.op not in _LIBCCPS:
        raise UsageError(f"an agent of portus uses operation {instruction.op}, which libccp does not have")
    left, right = _operand(instruction.left), _operand(instruction.right)
    return Instruction(Op(instruction.op), instruction.to.ours, left, right)


def _operand(register: Register) -> Operand:
    if register.kind == IMMEDIATE:
        return Operand(register.number, immediate=True)
    return Operand(register.ours)
