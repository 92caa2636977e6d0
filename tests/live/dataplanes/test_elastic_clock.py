"""Real hosts on a machine that stands still on purpose: the fabric's clock stands still with it."""

from __future__ import annotations

import pytest

from engines.emulation.engine import UNKEPT, MininetEngine
from engines.engine import Silent
from fabric.plan import PAYLOAD_SHARE
from model.result import RunResult
from model.spec import (
    ELASTIC,
    OF_ALL,
    STRICT,
    LinkSpec,
    NoiseSpec,
    RunSpec,
    TopologySpec,
    WorkloadSpec,
)

RATE_MBPS, QUEUE_PKTS = 20.0, 12
STALLS = NoiseSpec(OF_ALL, every_ms=60, least_ms=10, most_ms=20)
"""Stalls longer than the 7 ms that a full queue lasts, for a quarter of the time."""

pytestmark = [pytest.mark.emulation, pytest.mark.physics]


def one_flow(clock: str) -> RunResult:
    spec = RunSpec(
        link=LinkSpec(RATE_MBPS, queue_pkts=QUEUE_PKTS),
        topology=TopologySpec("star", {"n": 2}),
        workload=WorkloadSpec("reference"),
        traffic="native",
        warmup_s=1.0,
        seconds=4.0,
        noise=STALLS,
        clock=clock,
    )
    engine = MininetEngine()
    engine.check(spec)
    try:
        return engine.run(spec, Silent(), UNKEPT)
    finally:
        engine.close()


def test_a_link_stays_full_in_the_fabric_s_time_though_the_machine_stands_still() -> None:
    elastic, strict = one_flow(ELASTIC), one_flow(STRICT)
    assert elastic.metrics["astray"] == strict.metrics["astray"] == 0
    assert 10 < elastic.metrics["clock_stretch_pct"] < 60
    assert elastic.metrics["clock_stretch_longest_ms"] > 8
    assert strict.metrics["clock_stretch_ms"] == 0
    expected_mbps = RATE_MBPS * PAYLOAD_SHARE
    found = {clock: result.flows[0].goodput_mbps / expected_mbps for clock, result in
             ((ELASTIC, elastic), (STRICT, strict))}  # fmt: skip
    assert 0.95 < found[ELASTIC] < 1.02
    assert found[STRICT] < 1.02, "no clock makes a link faster"
    assert elastic.metrics["late_p99_us"] < strict.metrics["late_p99_us"]
