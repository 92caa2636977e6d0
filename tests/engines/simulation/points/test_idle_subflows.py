"""Idle and starved subflows of a simulated point, from its samples, and the chart of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from analysis.idleness import idleness
from model.result import RunResult
from model.spec import (
    LINUX,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support.simulated_networks import result_of

SPEC = RunSpec(
    LinkSpec(10.0, 100.0), TopologySpec("two_bottlenecks", {"first": 8, "second": 0, "lanes": 2}),
    TransportSpec(2, "lia"), WorkloadSpec("against_tcp"),
    engine="simulator", warmup_s=2.0, seconds=6.0, sampling=SamplingSpec(sockets_ms=20),
)  # fmt: skip


def run(stack: StackSpec) -> RunResult:
    return result_of(dataclasses.replace(SPEC, stack=stack))


def test_idle_by_samples_is_idle_by_the_windows_ends() -> None:
    result = run(dataclasses.replace(LINUX, send_buffer=120))
    table = idleness(result.samples["sockets"])
    assert np.isfinite(table["idle_pct"]).all() and np.isfinite(table["starved_pct"]).all()
    assert ((table["idle_pct"] >= 0) & (table["idle_pct"] <= 100)).all()
    assert float(table["idle_pct"].mean()) == pytest.approx(result.metrics["subflow_idle_pct"], abs=1e-6)
    plain = np.bincount(table["flow"])[table["flow"]] == 1
    assert not table["idle_pct"][plain].any()


def test_a_small_buffer_that_bursts_fill_starves_subflows_and_a_reserve_does_not() -> None:
    def mptcps(stack: StackSpec) -> tuple[float, float]:
        table = idleness(run(stack).samples["sockets"])
        of_mptcp = np.bincount(table["flow"])[table["flow"]] > 1
        return table["idle_pct"][of_mptcp].max(), table["starved_pct"][of_mptcp].max()

    small, large = mptcps(dataclasses.replace(LINUX, send_buffer=120)), mptcps(LINUX)
    assert small[0] > 5 and small[1] > 5
    assert large[0] < small[0] and large[1] < small[1]
