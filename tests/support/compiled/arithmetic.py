"""The arithmetic of the BPF objects: the same source file, compiled for this machine."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path

from tests.support.compiled import library
from tests.support.coupled_model import Path as ModelPath

HEADER = Path(__file__).resolve().parents[3] / "engines/emulation/congestion/bpf/arithmetic.h"
ONE_PACKET = 2.0**32
MOST = 64
_WRAPPER = """
#include "arithmetic.h"
static struct paths summed(const struct rf_path *paths, u32 count) {
    struct paths all = {0};
    for (u32 i = 0; i < count; i++) add(&all, &paths[i]);
    return all;
}
static struct olia sorted(const struct rf_path *paths, u32 count) {
    struct olia sets = {0};
    for (u32 i = 0; i < count; i++) olia_look(&sets, &paths[i]);
    for (u32 i = 0; i < count; i++) olia_count(&sets, &paths[i]);
    return sets;
}
#define PER_ACK(name) s64 t_##name(const struct rf_path *paths, u32 count, u32 i) { \\
    struct paths all = summed(paths, count); return (s64)name##_per_ack(&all, &paths[i]); }
PER_ACK(lia)
PER_ACK(ewtcp)
PER_ACK(balia)
s64 t_olia(const struct rf_path *paths, u32 count, u32 i) {
    struct paths all = summed(paths, count);
    struct olia sets = sorted(paths, count);
    return olia_per_ack(&all, &sets, &paths[i]);
}
s64 t_reno(const struct rf_path *paths, u32 count, u32 i) {
    (void)count;
    return (s64)per_ack_of_reno(paths[i].window);
}
u32 t_balia_after_loss(const struct rf_path *paths, u32 count, u32 i) {
    struct paths all = summed(paths, count);
    return balia_after_loss(&all, &paths[i]);
}
struct rf_path t_path_of(u32 window, u32 rtt, u64 between) { return path_of(window, rtt, between); }
u32 t_dctcp_alpha(u32 alpha, u32 delivered, u32 marked) { return dctcp_alpha(alpha, delivered, marked); }
u32 t_dctcp_after_marks(u32 window, u32 alpha) { return dctcp_after_marks(window, alpha); }
s64 t_whole_packets(s64 *credit, s64 per_ack, u32 packets) { return whole_packets(credit, per_ack, packets); }
"""


class CPath(ctypes.Structure):
    _fields_ = (("window", ctypes.c_uint32), ("rtt", ctypes.c_uint32), ("between_losses", ctypes.c_uint32))


@functools.cache
def compiled() -> ctypes.CDLL:
    """Return the compiled library. Skips the test if there is no C compiler."""
    flags = ("-O1", "-g", "-Werror", f"-I{HEADER.parent}", "-fsanitize=undefined")
    trap = ("-fno-sanitize-recover=all", "-fsanitize-undefined-trap-on-error")
    loaded = library.loaded(_WRAPPER, ".c", *flags, *trap)
    for name in ("lia", "ewtcp", "balia", "olia", "reno"):
        getattr(loaded, f"t_{name}").restype = ctypes.c_int64
    loaded.t_whole_packets.restype = ctypes.c_int64
    for name in ("balia_after_loss", "dctcp_alpha", "dctcp_after_marks"):
        getattr(loaded, f"t_{name}").restype = ctypes.c_uint32
    loaded.t_path_of.restype = CPath
    return loaded


def c_path(window: int, rtt_eighths_us: int, between_losses: int = 0) -> CPath:
    """Return a path as the BPF programs make it from the kernel's values: clipped."""
    found = compiled().t_path_of(window, rtt_eighths_us, ctypes.c_uint64(between_losses))
    assert isinstance(found, CPath)
    return found


def model_paths(paths: Sequence[CPath]) -> list[ModelPath]:
    return [ModelPath(p.window, p.rtt / 8e6, p.between_losses) for p in paths]


def per_ack(name: str, paths: Sequence[CPath], i: int) -> float:
    """Return the increase on path `i`, in packets per acknowledged packet."""
    return float(getattr(compiled(), f"t_{name}")((CPath * len(paths))(*paths), len(paths), i)) / ONE_PACKET


def balia_after_loss(paths: Sequence[CPath], i: int) -> int:
    return int(compiled().t_balia_after_loss((CPath * len(paths))(*paths), len(paths), i))


def grown(window: int, per_ack_fixed: int, acks: int) -> int:
    """Return the window after `acks` acknowledgements, one by one."""
    credit = ctypes.c_int64(0)
    for _ in range(acks):
        added = compiled().t_whole_packets(ctypes.byref(credit), ctypes.c_int64(per_ack_fixed), 1)
        window = max(1, window + added)
    return window
