"""The simulator's translation of the datapath's programs (fabric/simulation/ccp/), as a library."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from ccp.language.instructions import Program

FABRIC = Path(__file__).resolve().parents[3] / "fabric"
SOURCES = ("loaded_program", "translation", "fold_unit")
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
void t_begin(FoldUnit* of, ccp_u64 window, ccp_u64 now, ccp_u64* kept) {
  ccp_begin(&of->flow, &of->program(), window, now);
  store(*of, kept);
}
int t_ack(FoldUnit* of, const ccp_u64* in, ccp_u64 mss, ccp_u64 now, ccp_u64 srtt, int silent, ccp_u64* kept,
          ccp_u64* fields) {
  std::fill_n(of->flow.registers, CCP_PRIMITIVE + 16, 0x5bad5bad5bad5badULL);  // by another flow
  load(*of, kept);
  if (ccp_take_program(&of->flow) != 0) ccp_change(&of->flow, &of->program(), now);
  ccp_take_controls(&of->flow);
  std::copy(in, in + 16, of->flow.registers + CCP_PRIMITIVE);
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


class Translated:
    """One flow. Between acknowledgements, others overwrite all registers but those that are kept."""

    def __init__(self, *programs: Program, window: int = 0, now_us: int = 0) -> None:
        self._library = library()
        self._programs = programs
        packed = b"".join(program.packed() for program in programs)
        self._unit = ctypes.c_void_p(self._library.t_new(packed, len(programs)))
        self._kept = (ctypes.c_uint64 * 128)()
        self._library.t_begin(self._unit, window, now_us, self._kept)

    def __del__(self) -> None:
        self._library.t_delete(self._unit)

    def acknowledge(
        self,
        primitives: Sequence[int],
        now_us: int,
        *,
        mss: int = 1000,
        srtt_us: int = 0,
        silent: bool = False,
    ) -> list[int] | None:
        """Return the fields that the program has, None without a report."""
        given, fields = (ctypes.c_uint64 * 16)(*primitives), (ctypes.c_uint64 * 16)()
        done = self._library.t_ack(self._unit, given, mss, now_us, srtt_us, int(silent), self._kept, fields)
        return list(fields)[: self.fields] if done else None

    def set_program(self, number: int) -> None:
        self._library.t_set_program(self._unit, number)

    def set_control(self, number: int, value: int) -> None:
        self._library.t_set_control(self._unit, number, value)

    @property
    def fields(self) -> int:
        """The number of fields of the flow's program."""
        return len(self._programs[self.state[3]].fields)

    @property
    def state(self) -> tuple[int, ...]:
        """Window, rate, errors, number of the program."""
        out = (ctypes.c_uint64 * 4)()
        self._library.t_state(self._unit, out)
        return tuple(out)


def operations(program: Program, *, plain: bool) -> int:
    """Return the number of operations of the program's main section, without the one that ends it."""
    return int(library().t_operations(program.packed(), int(plain)))


@functools.cache
def library() -> ctypes.CDLL:
    """Compile the simulator's sources. Skips the test where there is no compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++: sudo apt-get install g++")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "wrapper").with_suffix(".cpp"), Path(folder, "wrapper.so")
        source.write_text(_WRAPPER)
        sources = [source, *(FABRIC / f"simulation/ccp/{name}.cpp" for name in SOURCES)]
        flags = ["-std=c++20", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", f"-I{FABRIC}"]
        argv = [compiler, *flags, "-o", str(target), *map(str, sources)]
        subprocess.run(argv, check=True, timeout=120)
        loaded = ctypes.CDLL(str(target))
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    loaded.t_new.restype = pointer
    loaded.t_operations.restype = u64
    loaded.t_new.argtypes = (ctypes.c_char_p, u64)
    loaded.t_delete.argtypes = (pointer,)
    loaded.t_begin.argtypes = (pointer, u64, u64, pointer)
    loaded.t_ack.argtypes = (pointer, pointer, u64, u64, u64, ctypes.c_int, pointer, pointer)
    loaded.t_set_program.argtypes = (pointer, u32)
    loaded.t_set_control.argtypes = (pointer, u32, u64)
    loaded.t_state.argtypes = (pointer, pointer)
    loaded.t_operations.argtypes = (ctypes.c_char_p, ctypes.c_int)
    return loaded
