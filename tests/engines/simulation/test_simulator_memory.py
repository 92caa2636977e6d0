"""A point that does not fit is refused before anything is built, with the memory it needs."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

import topos
from common.errors import UsageError
from engines.simulation.flows import check, check_memory, estimated_mb
from model.flows import drawn_flows
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec


def spec_of(k: int = 4, subflows: int = 8, **link: Any) -> RunSpec:
    return RunSpec(
        LinkSpec(100.0, **link),
        TopologySpec("fat_tree", {"k": k}),
        TransportSpec(subflows, "lia"),
        engine="simulator",
    )


def estimate(spec: RunSpec) -> float:
    topology = topos.build(spec.topology.kind, spec.topology.params)
    return estimated_mb(spec, topology, drawn_flows(spec, topology))


def test_what_is_larger_takes_more() -> None:
    small = estimate(spec_of())
    for larger in (
        spec_of(k=8),
        spec_of(subflows=16),
        spec_of(queue_pkts=400),
        spec_of(queue_pkts=0),
        spec_of(queue_bytes=10**6),
        spec_of(delay_us=1000.0),
    ):
        assert estimate(larger) > small


def test_a_queue_in_bytes_counts_as_the_packets_it_holds() -> None:
    assert estimate(spec_of(queue_bytes=100 * 1514)) == pytest.approx(estimate(spec_of(queue_pkts=100)))


@pytest.mark.parametrize(
    ("k", "parts", "measured"),
    [
        (8, 1, 50),
        (16, 1, 103),
        (32, 1, 446),
        (8, 2, 54),
        (8, 8, 81),
        (16, 2, 103),
        (16, 8, 128),
        (32, 4, 389),
    ],
)
def test_measured_points_are_met_and_parts_counted(k: int, parts: int, measured: int) -> None:
    # Peaks of processes that simulated 0.04 to 0.12 s, in MB.
    spec = spec_of(k=k, delay_us=0.0 if parts > 1 else 10.0)
    divided = dataclasses.replace(spec, parts=parts)
    assert estimate(divided) == pytest.approx(measured, rel=0.3)
    assert parts == 1 or estimate(divided) > estimate(spec)


def test_what_does_not_fit_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.simulation.flows.free_memory_mb", lambda: 50.0)
    check(spec_of())
    with pytest.raises(UsageError, match=r"128 hosts and 1024 subflows takes about \d+ MB .* 50 MB are free"):
        check(spec_of(k=8, queue_pkts=0))


@pytest.mark.parametrize(("queue_pkts", "advice"), [(100, "fewer --subflows"), (0, "a limit to --queue")])
def test_the_advice_fits_the_point(queue_pkts: int, advice: str) -> None:
    spec = spec_of(queue_pkts=queue_pkts)
    topology = topos.build(spec.topology.kind, spec.topology.params)
    flows = drawn_flows(spec, topology)
    enough = estimated_mb(spec, topology, flows)
    check_memory(spec, topology, flows, enough)
    with pytest.raises(UsageError) as refused:
        check_memory(spec, topology, flows, enough - 1)
    assert re.search(f"{advice}$", str(refused.value))
