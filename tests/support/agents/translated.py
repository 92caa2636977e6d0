"""The simulator's translation of the datapath's programs (fabric/simulation/ccp/), as a library."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ccp.language import Program
from tests.support.agents.ccp_model import CompiledFlow
from tests.support.compiled import library as compiled

FABRIC = Path(__file__).resolve().parents[3] / "fabric"
SOURCES = ("translation", "fold_unit")
_WRAPPER = """
#include <algorithm>
#include "simulation/ccp/fold_unit.hpp"
using fabric::FoldUnit;
void store(const FoldUnit& from, ccp_u64* kept) {
  FoldUnit::Near near{};
  from.store(near, kept + near.size());
  std::ranges::copy(near, kept);
}
void load(FoldUnit& to, const ccp_u64* kept) {
  FoldUnit::Near near{};
  std::copy(kept, kept + near.size(), near.begin());
  to.load(near, kept + near.size());
}
extern "C" {
FoldUnit* t_new(const ccp_program* programs, ccp_u64 count) { return new FoldUnit({programs, count}); }
void t_delete(FoldUnit* of) { delete of; }
void t_begin(FoldUnit* of, ccp_u64* kept, ccp_u64 window, ccp_u64 now) {
  ccp_begin(&of->flow, &of->program(), window, now);
  store(*of, kept);
}
int t_ack(FoldUnit* of, ccp_u64* kept, const ccp_u64* in, ccp_u64 mss, ccp_u64 now, ccp_u64 srtt, int silent,
          ccp_u64* fields) {
  // By another flow.
  std::fill_n(of->flow.registers, CCP_PRIMITIVE + fabric::kPrimitives, 0x5bad5bad5bad5badULL);
  load(*of, kept);
  if (ccp_take_program(&of->flow) != 0) ccp_change(&of->flow, &of->program(), now);
  ccp_take_controls(&of->flow);
  std::copy(in, in + fabric::kPrimitives, of->flow.registers + CCP_PRIMITIVE);
  const int reports = ccp_acknowledged(&of->flow, &of->program(), mss, now, srtt, silent);
  std::copy(of->flow.registers, of->flow.registers + 16, fields);
  if (reports != 0) ccp_reported(&of->flow, &of->program());
  store(*of, kept);
  return reports;
}
void t_set_program(FoldUnit* of, ccp_u32 number) { ccp_stage_program(&of->flow, number); }
void t_set_control(FoldUnit* of, ccp_u32 number, ccp_u64 value) {
  ccp_stage_control(&of->flow, number, value);
}
void t_state(const FoldUnit* of, ccp_u64* out) {
  const ccp_flow& flow = of->flow;
  const ccp_u64 state[] = {flow.window, flow.rate, flow.errors, flow.program};
  std::ranges::copy(state, out);
}
ccp_u64 t_operations(const ccp_program* program, int plain) {
  const FoldUnit unit({program, 1});
  return (plain != 0 ? unit.program().plain : unit.program().general).size() - 1;
}
}
"""


class Translated(CompiledFlow):
    """One flow. Between acknowledgements, others overwrite all registers but those that are kept."""

    def __init__(self, *programs: Program, window: int = 0, now_us: int = 0) -> None:
        self._programs = programs
        packed = b"".join(program.packed() for program in programs)
        unit, kept = ctypes.c_void_p(library().t_new(packed, len(programs))), (ctypes.c_uint64 * 128)()
        super().__init__(library(), unit, kept)
        self._library.t_begin(*self._places, window, now_us)

    def __del__(self) -> None:
        self._library.t_delete(self._flow)

    def acknowledge(self, primitives: Sequence[int], now_us: int, **how: Any) -> list[int] | None:
        """Return the fields that the program has, None without a report."""
        found = super().acknowledge(primitives, now_us, **how)
        return None if found is None else found[: self.fields]

    @property
    def fields(self) -> int:
        """The number of fields of the flow's program."""
        return len(self._programs[self.state[3]].fields)

    @property
    def state(self) -> tuple[int, ...]:
        """Window, rate, errors, number of the program."""
        out = (ctypes.c_uint64 * 4)()
        self._library.t_state(self._flow, out)
        return tuple(out)


def operations(program: Program, *, plain: bool) -> int:
    """Return the number of operations of the program's main section, without the one that ends it."""
    return int(library().t_operations(program.packed(), int(plain)))


@functools.cache
def library() -> ctypes.CDLL:
    """Compile the simulator's sources. Skips the test where there is no compiler."""
    sources = [FABRIC / f"simulation/ccp/{name}.cpp" for name in SOURCES]
    loaded = compiled.loaded(_WRAPPER, ".cpp", "-std=c++20", "-O1", f"-I{FABRIC}", sources=sources)
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    loaded.t_new.restype = pointer
    loaded.t_operations.restype = u64
    loaded.t_new.argtypes = (ctypes.c_char_p, u64)
    loaded.t_delete.argtypes = (pointer,)
    loaded.t_begin.argtypes = (pointer, pointer, u64, u64)
    loaded.t_ack.argtypes = (pointer, pointer, pointer, u64, u64, u64, ctypes.c_int, pointer)
    loaded.t_set_program.argtypes = (pointer, u32)
    loaded.t_set_control.argtypes = (pointer, u32, u64)
    loaded.t_state.argtypes = (pointer, pointer)
    loaded.t_operations.argtypes = (ctypes.c_char_p, ctypes.c_int)
    return loaded
