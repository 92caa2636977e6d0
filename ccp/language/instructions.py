"""Instructions of the datapath and their binary form, `struct ccp_program` of fabric/ccp/datapath.h. Pure."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

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
)  # fmt: skip
"""In the order of their registers. All but the last are libccp's."""
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
