"""The machine's noise while it waits, and the estimate of a point's memory."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from common.errors import UsageError
from engines.emulation.engine import check, check_memory, estimated_mb
from engines.emulation.noise import PERIOD_US, measure
from fabric import _core
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec
from tests.support.topologies import with_first_link
from tests.support.waiting import until

BIN = 1 + 1 / 16
"""Ratio of the ends of a bin of the histogram: a percentile is the upper end of its bin."""


def test_every_cpu_is_watched_and_nothing_is_early() -> None:
    seconds = 0.5
    noise = measure(seconds)
    assert [cpu for cpu, _, _ in noise.by_cpu] == sorted(os.sched_getaffinity(0))
    assert noise.seconds == seconds
    assert 0 < noise.late_p50_us <= noise.late_p99_us
    for _, late_p99_us, longest_us in noise.by_cpu:
        assert 0 < late_p99_us <= longest_us * BIN, "no sleep ends on time to the nanosecond"
    assert noise.longest_us == max(longest_us for _, _, longest_us in noise.by_cpu)
    assert 0 <= noise.steal_pct <= 100


def test_wake_ups_are_counted_once_each() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    probe = _core.IdleProbe(cpus, period_us=PERIOD_US)
    began_s = time.monotonic()
    probe.start()
    until(lambda: all(probe.histogram(i).sum() for i in range(len(cpus))), 20.0, "each CPU woke up")
    probe.stop()
    elapsed_s = time.monotonic() - began_s
    for i in range(len(cpus)):
        assert 0 < probe.histogram(i).sum() <= elapsed_s * 1e6 / PERIOD_US
        assert probe.longest_ns(i) > 0, "no sleep ends on time to the nanosecond"
    assert not probe.is_real_time, "none was asked for"


def spec_of(k: int = 4, subflows: int = 8, rate_mbps: float = 10.0, **other: Any) -> RunSpec:
    link = LinkSpec(rate_mbps, **{name: other.pop(name) for name in tuple(other) if "queue" in name})
    return RunSpec(
        link, TopologySpec("fat_tree", {"k": k}), TransportSpec(subflows), **{"traffic": "native", **other}
    )


def estimate(spec: RunSpec) -> float:
    topology = spec.network()
    return estimated_mb(spec, topology, planned_flows(spec, topology))


def test_what_is_larger_takes_more() -> None:
    small = estimate(spec_of())
    for larger in (
        spec_of(k=8),
        spec_of(subflows=16),
        spec_of(queue_pkts=400),
        spec_of(queue_pkts=0),
        spec_of(traffic="iperf3"),
        spec_of(sampling=SamplingSpec(queues_ms=10)),
        spec_of(sampling=SamplingSpec(sockets_ms=10)),
        spec_of(sampling=SamplingSpec(pings_ms=10)),
    ):
        assert estimate(larger) > small


def test_a_long_queue_of_one_link_counts() -> None:
    spec = spec_of()
    topology = spec.network()
    longer = with_first_link(topology, queue_pkts=10_000)
    flows = planned_flows(spec, topology)
    assert estimated_mb(spec, longer, flows) > estimated_mb(spec, topology, flows) + 1


def test_measured_points_fit_the_bound() -> None:
    # Peaks of the memory cgroup of `refabric run cs244-one-to-one`, in MB (engines/emulation/engine.py).
    for k, subflows, measured in ((4, 1, 179), (4, 8, 176), (8, 1, 177), (8, 8, 180)):
        assert measured <= estimate(spec_of(k=k, subflows=subflows, rate_mbps=2.0)) <= 5 * measured


def test_an_unbounded_queue_is_bounded_by_what_the_core_holds() -> None:
    assert estimate(spec_of(k=16, queue_pkts=0)) < 8000


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        (spec_of(queue_pkts=0), "a limit to --queue"),
        (spec_of(k=8, traffic="iperf3"), "--traffic native"),
        (spec_of(k=8), "fewer --subflows"),
        (spec_of(sampling=SamplingSpec(queues_ms=1), seconds=36000.0), "longer intervals between samples"),
    ],
)
def test_the_advice_fits_the_point(spec: RunSpec, advice: str) -> None:
    topology = spec.network()
    flows = planned_flows(spec, topology)
    enough_mb = estimated_mb(spec, topology, flows)
    check_memory(spec, topology, flows, enough_mb)
    with pytest.raises(UsageError, match=rf"takes up to .* MB are free: .*{advice}$"):
        check_memory(spec, topology, flows, enough_mb - 1)


def test_the_engine_refuses_before_it_asks_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.emulation.engine.free_memory_mb", lambda: 50.0)
    with pytest.raises(UsageError, match="50 MB are free"):
        check(spec_of())
