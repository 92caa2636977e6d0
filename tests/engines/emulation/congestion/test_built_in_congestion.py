"""Counters of congestion controls that the kernel was built with."""

from __future__ import annotations

import pytest

from common.errors import HostUnfitError
from engines.emulation.congestion.registration import BuiltIn, CongestionCounts, counted

TEXT = "rf_lia 1200 7\nrf_olia 0 0\nrf_dctcp 30 2\n"


def test_counters_are_read_by_name() -> None:
    assert counted(TEXT, {"rf_lia", "rf_dctcp"}) == [CongestionCounts(1200, 7), CongestionCounts(30, 2)]
    assert counted(TEXT, {"rf_balia"}) == []


def test_a_kernel_without_an_algorithm_is_named_with_what_it_has() -> None:
    with pytest.raises(HostUnfitError, match=r"rf_olia is not built into this kernel \(it has: .*reno"):
        BuiltIn(["olia"])


def test_without_algorithms_there_is_nothing_to_count() -> None:
    assert BuiltIn([]).counts() == CongestionCounts()
