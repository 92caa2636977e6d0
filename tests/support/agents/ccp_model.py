"""A slow model of the datapath's programs in plain Python, and the header compiled for this machine."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ccp.language import (
    CONTROL,
    CWND,
    FALLTHROUGH,
    FLAG,
    INFINITE,
    MICROS,
    PRIMITIVE,
    PRIMITIVES,
    REPORT,
    SHOULD_REPORT,
    Instruction,
    Op,
    Operand,
    Program,
)
from tests.support.compiled import library as compiled

HEADER = Path(__file__).resolve().parents[3] / "fabric/ccp/datapath.h"
MOST = 2**64
_WRAPPER = """
#include "datapath.h"
unsigned long long t_size(void) { return sizeof(struct ccp_flow); }
void t_begin(struct ccp_flow *f, const struct ccp_program *p, ccp_u64 window, ccp_u64 now) {
    ccp_begin(f, p, window, now);
}
int t_ack(struct ccp_flow *f, const struct ccp_program *table, const ccp_u64 *in, ccp_u64 mss, ccp_u64 now,
          ccp_u64 srtt, int silent, ccp_u64 *fields) {
    int is_new = ccp_take_program(f);
    const struct ccp_program *p = &table[f->program];
    if (is_new) ccp_change(f, p, now);
    ccp_take_controls(f);
    for (int i = 0; i < PRIMITIVES; i++) f->registers[CCP_PRIMITIVE + i] = in[i];
    int report = ccp_acknowledged(f, p, mss, now, srtt, silent);
    for (int i = 0; i < 16; i++) fields[i] = f->registers[CCP_REPORT + i];
    if (report) ccp_reported(f, p);
    return report;
}
void t_timeout(struct ccp_flow *f, ccp_u64 mss) { ccp_timed_out(f, mss); }
ccp_u64 t_window(const struct ccp_flow *f) { return f->window; }
ccp_u64 t_rate(const struct ccp_flow *f) { return f->rate; }
ccp_u32 t_program(const struct ccp_flow *f) { return f->program; }
void t_set_program(struct ccp_flow *f, ccp_u32 number) { ccp_stage_program(f, number); }
void t_set_control(struct ccp_flow *f, ccp_u32 number, ccp_u64 value) { ccp_stage_control(f, number, value); }
ccp_u64 t_errors(const struct ccp_flow *f) { return f->errors; }
"""


class Wrong(Exception):
    """An overflow, an underflow or a division by zero."""


class Model:
    """A flow's registers and its program, run one instruction at a time."""

    def __init__(self, program: Program, now_us: int = 0) -> None:
        self.program = program
        self.registers = [0] * 128
        self.zero_us = now_us
        self.window = 0
        self.errors = 0
        self._run(program.initial)

    def acknowledge(self, primitives: Sequence[int], now_us: int) -> list[int] | None:
        """Return the report's fields, None without a report."""
        self.registers[PRIMITIVE : PRIMITIVE + len(PRIMITIVES)] = primitives
        for register in (FLAG, FALLTHROUGH, SHOULD_REPORT):
            self.registers[register] = 0
        micros = self.registers[MICROS] = now_us - self.zero_us
        self.registers[CWND] = self.window
        try:
            self._run(self.program.main)
        except Wrong:
            self.errors += 1
            return None
        finally:
            if self.registers[MICROS] != micros:
                self.zero_us = now_us - self.registers[MICROS]
        self.window = self.registers[CWND]
        if not self.registers[SHOULD_REPORT]:
            return None
        fields = self.registers[REPORT:CONTROL].copy()
        self._run(self.program.reset)
        return fields

    def _run(self, code: Sequence[Instruction]) -> None:
        at = 0
        while at < len(code):
            now = code[at]
            at += 1
            if now.op is Op.UNLESS:
                at += 0 if self.registers[FLAG] else now.right.value
            elif now.op is Op.STOP:
                if not self.registers[FALLTHROUGH]:
                    return
            else:
                self._step(now)

    def _step(self, now: Instruction) -> None:
        a, b, old = self._read(now.left), self._read(now.right), self.registers[now.to]
        if (now.op is Op.IF and not a) or (now.op is Op.NOTIF and a):
            return
        value = computed(now.op, a, b, old)
        if value is None or not 0 <= value < MOST:
            raise Wrong
        self.registers[now.to] = value

    def _read(self, operand: Operand) -> int:
        return operand.value if operand.immediate else self.registers[operand.value]


def computed(op: Op, a: int, b: int, old: int) -> int | None:
    """Return the result over the integers; None for a division by zero."""
    table = {
        Op.ADD: a + b, Op.SUB: a - b, Op.MUL: _product(a, b), Op.DIV: a // b if b else None, Op.BIND: b,
        Op.DEF: MOST - 1 if b == INFINITE else b, Op.EQUIV: int(a == b), Op.GT: int(a > b),
        Op.LT: int(a < b), Op.MAX: max(a, b), Op.MIN: min(a, b), Op.IF: b, Op.NOTIF: b,
        Op.EWMA: (a * old + (10 - a) * b) // 10 if old else b, Op.MAXWRAP: _later(a, b),
    }  # fmt: skip
    return table[op]


def _product(a: int, b: int) -> int | None:
    """Return the product of 64 bits, with libccp's test for an overflow."""
    product = a * b % MOST
    return None if product < a and b else product


def _later(a: int, b: int) -> int:
    if not a or not b:
        return a or b
    ahead = (b - a) % 2**32
    return b % 2**32 if ahead <= 2**31 else a % 2**32


class CompiledFlow:
    """A flow in a library whose t_ack takes two places in memory first; the flow is in the first."""

    def __init__(self, library: ctypes.CDLL, *places: Any) -> None:
        self._library = library
        self._places = places
        self._flow = places[0]

    def acknowledge(
        self,
        primitives: Sequence[int],
        now_us: int,
        *,
        mss: int = 1000,
        srtt_us: int = 0,
        silent: bool = False,
    ) -> list[int] | None:
        """Return all 16 fields, None without a report."""
        given, fields = (ctypes.c_uint64 * len(PRIMITIVES))(*primitives), (ctypes.c_uint64 * 16)()
        done = self._library.t_ack(*self._places, given, mss, now_us, srtt_us, int(silent), fields)
        return list(fields) if done else None

    def set_program(self, number: int) -> None:
        self._library.t_set_program(self._flow, number)

    def set_control(self, number: int, value: int) -> None:
        self._library.t_set_control(self._flow, number, value)


class Native(CompiledFlow):
    """The same model, but run by the header that the C compiler compiles, with a table of programs."""

    def __init__(self, *programs: Program, window: int = 0, now_us: int = 0) -> None:
        table = b"".join(program.packed() for program in programs)
        super().__init__(library(), ctypes.create_string_buffer(library().t_size()), table)
        self._library.t_begin(*self._places, window, now_us)

    def time_out(self, mss: int = 1000) -> None:
        self._library.t_timeout(self._flow, mss)

    @property
    def registers(self) -> list[int]:
        return list(struct.unpack_from("128Q", self._flow))

    @property
    def program(self) -> int:
        return int(self._library.t_program(self._flow))

    @property
    def rate(self) -> int:
        return int(self._library.t_rate(self._flow))

    @property
    def window(self) -> int:
        return int(self._library.t_window(self._flow))

    @property
    def errors(self) -> int:
        return int(self._library.t_errors(self._flow))


@functools.cache
def library() -> ctypes.CDLL:
    """Compile the header. Skips the test where there is no compiler."""
    defined = f"-DPRIMITIVES={len(PRIMITIVES)}"
    loaded = compiled.loaded(_WRAPPER, ".c", "-O2", "-Werror", defined, f"-I{HEADER.parent}")
    u64, pointer = ctypes.c_uint64, ctypes.c_void_p
    for of_u64 in (loaded.t_size, loaded.t_window, loaded.t_errors, loaded.t_rate):
        of_u64.restype = u64
    loaded.t_program.restype = ctypes.c_uint32
    loaded.t_set_program.argtypes = (pointer, ctypes.c_uint32)
    loaded.t_set_control.argtypes = (pointer, ctypes.c_uint32, u64)
    loaded.t_begin.argtypes = (pointer, ctypes.c_char_p, u64, u64)
    loaded.t_ack.argtypes = (pointer, ctypes.c_char_p, pointer, u64, u64, u64, ctypes.c_int, pointer)
    loaded.t_timeout.argtypes = (pointer, u64)
    for of_flow in (loaded.t_window, loaded.t_errors, loaded.t_rate, loaded.t_program):
        of_flow.argtypes = (pointer,)
    return loaded


def primitives(**values: int) -> list[int]:
    """Return primitives by their names after the dot, the others 0."""
    names = [name.partition(".")[2] for name in PRIMITIVES]
    assert set(values) <= set(names)
    return [values.get(name, 0) for name in names]
