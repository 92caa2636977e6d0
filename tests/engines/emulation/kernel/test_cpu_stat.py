"""Parsing /proc/stat and /proc/net/softnet_stat."""

from __future__ import annotations

import pytest

from engines.emulation.kernel.proc import (
    ALL,
    CpuSampler,
    CpuTimes,
    parse_stat,
    softnet_dropped,
    use,
)

STAT = """cpu  25107 0 15287 459641 963 0 8343 37 0 0
cpu0 9979 0 7252 233793 95 0 3731 10 0 0
cpu1 15128 0 8034 225847 868 0 4612 27 0 0
intr 1 2 3
ctxt 4
"""
SOFTNET = """00530a79 00000002 00000001 00000000 00000000
005605cd 00000000 00000003 00000000 00000000
"""


def test_stat_lines() -> None:
    times = parse_stat(STAT)
    assert list(times) == [ALL, "cpu0", "cpu1"]
    assert times[ALL] == CpuTimes(user=25107, system=15287, idle=460604, softirq=8343, steal=37)


def test_old_kernels_lines_have_fewer_columns() -> None:
    assert parse_stat("cpu 1 2 3 4 5 6 7\n")[ALL] == CpuTimes(3, 9, 9, 7, 0)


def test_no_cpu_line() -> None:
    with pytest.raises(ValueError, match="no `cpu` line"):
        parse_stat("intr 1\n")


def test_busy_is_the_sum_of_its_parts() -> None:
    result = use(CpuTimes(10, 10, 100, 10, 0), CpuTimes(30, 20, 150, 20, 10))
    assert (result.user_pct, result.system_pct, result.softirq_pct, result.steal_pct) == (20, 10, 10, 10)
    assert result.busy_pct == 50


def test_no_time_no_use() -> None:
    assert use(CpuTimes(1, 1, 1, 1, 1), CpuTimes(1, 1, 1, 1, 1)).busy_pct == 0


def test_drops_of_all_cpus_count() -> None:
    assert softnet_dropped(SOFTNET) == 2


def test_sampler_on_this_machine() -> None:
    sampler = CpuSampler()
    sum(range(2_000_000))
    sample = sampler.sample()
    assert 0 <= sample.machine.busy_pct <= 100
    assert "cpu0" in sample.cpus
