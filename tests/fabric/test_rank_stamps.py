"""Ranks on real frames: what the core reads from a stamp is the rank, as exactly as 16 bits allow."""

from __future__ import annotations

import itertools

from fabric._core import rank_of_stamp
from tests.support.dataplanes.rank_stamps import MANTISSA_BITS, stamp

UNKNOWN, LAST = 0xFFFF, 2**32 - 1
POWERS = [2**n for n in range(MANTISSA_BITS, 32)]
RANKS = sorted({*range(5000), *(power + d for power in POWERS for d in (-1, 0, 1, power // 3))})


def test_small_ranks_are_read_exactly() -> None:
    assert [rank_of_stamp(stamp(rank)) for rank in range(2**MANTISSA_BITS)] == [*range(2**MANTISSA_BITS)]


def test_larger_ranks_are_read_within_half_a_thousandth_and_never_above() -> None:
    for rank in RANKS:
        read = rank_of_stamp(stamp(rank))
        assert read <= rank < read * (1 + 2.0 ** (1 - MANTISSA_BITS)) + 1


def test_stamps_and_what_is_read_from_them_keep_the_order_of_ranks() -> None:
    stamps = [stamp(rank) for rank in RANKS]
    assert all(a <= b for a, b in itertools.pairwise(stamps))
    read = [rank_of_stamp(value) for value in range(UNKNOWN)]
    assert all(a <= b for a, b in itertools.pairwise(read))


def test_a_frame_of_an_unknown_flow_goes_last() -> None:
    assert max(map(stamp, RANKS)) < UNKNOWN
    assert rank_of_stamp(UNKNOWN) == LAST
