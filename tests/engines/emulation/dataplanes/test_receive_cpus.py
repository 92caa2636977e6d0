from __future__ import annotations

import pytest

from engines.emulation.dataplanes.dataplane import cpu_mask


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ([0], "1"),
        ([0, 2], "5"),
        (range(32), "ffffffff"),
        ([32], "1,00000000"),
        ([1, 40, 95], "80000000,00000100,00000002"),
    ],
)
def test_the_kernel_takes_at_most_32_cpus_between_commas(cpus: list[int], mask: str) -> None:
    assert cpu_mask(cpus) == mask
