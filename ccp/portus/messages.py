"""Messages between a datapath and an agent of portus. Pure.

All numbers are little-endian. A message begins with its kind (16 bits), its length with this head (16 bits)
and the flow (32 bits). Source: portus 0.8 and libccp 1.1, the serialization of their messages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ccp.language.instructions import CONTROL, CWND, LOCAL, PRIMITIVE, RATE, REPORT, TEMPORARY
from common.errors import UsageError

MAX_BYTES = 32_768
_HEAD = struct.Struct("<HHI")
_CREATE = struct.Struct("<6I64s")
_COUNTED = struct.Struct("<II")
_INSTALL = struct.Struct("<III")
_NUMBER = struct.Struct("<I")
_EVENT = struct.Struct("<4I")
_INSTRUCTION = struct.Struct("<BBIBIBI")
_FIELD = struct.Struct("<BIQ")
IMMEDIATE, IMPLICIT = 1, 2
VOLATILE_REPORT, VOLATILE_CONTROL = 5, 8
_FIRST_IMPLICIT = 32
"""Our register of the event's flag, the first of libccp's implicit ones."""
FIRST: Mapping[int, int] = {
    0: CONTROL, IMPLICIT: _FIRST_IMPLICIT, 3: LOCAL, 4: PRIMITIVE, VOLATILE_REPORT: REPORT, 6: REPORT,
    7: TEMPORARY, VOLATILE_CONTROL: CONTROL,
}  # fmt: skip
"""Our first register of each of libccp's types."""
_ROOM: Mapping[int, int] = {
    0: 16,
    IMPLICIT: 6,
    3: 8,
    4: 15,
    VOLATILE_REPORT: 16,
    6: 16,
    7: 16,
    VOLATILE_CONTROL: 16,
}


class Kind(IntEnum):
    CREATE, MEASURE, INSTALL, UPDATE_FIELD, CHANGE_PROGRAM, READY = range(6)


@dataclass(frozen=True)
class Register:
    """A register by libccp's type and number, or with the type IMMEDIATE a number of 32 bits."""

    kind: int
    number: int

    @property
    def ours(self) -> int:
        """Return the number of our register. Raises UsageError if there is none."""
        if self.number >= _ROOM.get(self.kind, 0):
            raise UsageError(
                f"an agent of portus uses register {self.number} of type {self.kind}, which is not here"
            )
        return FIRST[self.kind] + self.number


@dataclass(frozen=True)
class Event:
    """The places of an event's instructions: its condition, and what runs if it holds."""

    flag: range
    body: range


@dataclass(frozen=True)
class Instruction:
    op: int
    to: Register
    left: Register
    right: Register


@dataclass(frozen=True)
class Install:
    """A program with the number by which the agent names it."""

    number: int
    events: tuple[Event, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Set:
    """Values that a flow's registers get; `program` is the number of the program to change to, or None."""

    flow: int
    values: tuple[tuple[Register, int], ...]
    program: int | None = None

    @property
    def cwnd_bytes(self) -> int | None:
        return self._implicit(CWND)

    @property
    def rate_bytes_per_s(self) -> int | None:
        return self._implicit(RATE)

    @property
    def controls(self) -> dict[int, int]:
        """Values of the program's controls by number."""
        return {r.number: value for r, value in self.values if r.kind in {0, VOLATILE_CONTROL}}

    def _implicit(self, ours: int) -> int | None:
        found = [
            value for register, value in self.values if register == Register(IMPLICIT, ours - _FIRST_IMPLICIT)
        ]
        return found[-1] if found else None


def ready(datapath: int) -> bytes:
    """Return the message with which a datapath introduces itself."""
    return _message(Kind.READY, 0, _NUMBER.pack(datapath))


def create(flow: int, cwnd_bytes: int, mss: int, source: int, destination: int) -> bytes:
    """Return the message that a flow has begun; addresses are numbers of 32 bits, ports are left out."""
    return _message(Kind.CREATE, flow, _CREATE.pack(cwnd_bytes, mss, source, 0, destination, 0, b""))


def measure(flow: int, program: int, fields: Sequence[int]) -> bytes:
    """Return a report; without fields it says that the flow has ended."""
    return _message(
        Kind.MEASURE, flow, _COUNTED.pack(program, len(fields)) + struct.pack(f"<{len(fields)}Q", *fields)
    )


def _message(kind: Kind, flow: int, body: bytes) -> bytes:
    return _HEAD.pack(kind, _HEAD.size + len(body), flow) + body


def decoded(data: bytes) -> Install | Set:
    """Return a message of an agent. Raises UsageError for one that is not understood."""
    try:
        kind, length, flow = _HEAD.unpack_from(data)
        if length != len(data):
            raise UsageError(f"an agent of portus sent {len(data)} bytes in a message of {length}")
        if kind == Kind.INSTALL:
            return _install(data)
        if kind == Kind.UPDATE_FIELD:
            (count,) = _NUMBER.unpack_from(data, _HEAD.size)
            return Set(flow, _values(data, _HEAD.size + _NUMBER.size, count))
        if kind == Kind.CHANGE_PROGRAM:
            program, count = _COUNTED.unpack_from(data, _HEAD.size)
            return Set(flow, _values(data, _HEAD.size + _COUNTED.size, count), program)
    except struct.error as error:
        raise UsageError(
            f"an agent of portus sent a message of {len(data)} bytes that ends early: {error}"
        ) from None
    raise UsageError(f"an agent of portus sent a message of kind {kind}, which no agent sends")


def _install(data: bytes) -> Install:
    at = _HEAD.size + _INSTALL.size
    number, events, instructions = _INSTALL.unpack_from(data, _HEAD.size)
    after = at + events * _EVENT.size
    if len(data) != after + instructions * _INSTRUCTION.size:
        raise UsageError(
            f"an agent of portus sent a program of another length than {instructions} instructions"
        )
    return Install(
        number,
        tuple(_event(*_EVENT.unpack_from(data, at + place * _EVENT.size)) for place in range(events)),
        tuple(
            _instruction(*_INSTRUCTION.unpack_from(data, after + place * _INSTRUCTION.size))
            for place in range(instructions)
        ),
    )


def _event(flag: int, flags: int, body: int, bodies: int) -> Event:
    return Event(range(flag, flag + flags), range(body, body + bodies))


def _instruction(op: int, *operands: int) -> Instruction:
    registers = [Register(*operands[place : place + 2]) for place in (0, 2, 4)]
    return Instruction(op, *registers)


def _values(data: bytes, at: int, count: int) -> tuple[tuple[Register, int], ...]:
    found = []
    for place in range(count):
        kind, number, value = _FIELD.unpack_from(data, at + place * _FIELD.size)
        found.append((Register(kind, number), value))
    return tuple(found)
