"""The stamp that carries a rank on a real frame, computed apart from the program that writes it
(engines/emulation/congestion/bpf/stamp.bpf.c)."""

from __future__ import annotations

MANTISSA_BITS = 12
_STEP = 1 << (MANTISSA_BITS - 1)


def stamp(rank: int) -> int:
    """Return the stamp of a rank: its 12 leading bits and their place, in 16 bits."""
    shift = max(0, rank.bit_length() - MANTISSA_BITS)
    mantissa = rank >> shift
    return mantissa if mantissa < _STEP else (shift + 1) * _STEP + mantissa - _STEP
