"""ccp-completion: what it runs, and how its statements are read off points."""

from __future__ import annotations

import pytest

import topos
from experiments.ccp.completion import FIGURE, SERVERS
from model.spec import sub_seed
from tests.support.figures import points_of, simulate
from workloads import matrices
from workloads.flow import Traffic


def test_both_get_the_same_flows() -> None:
    first, second, *_ = specs = points_of(FIGURE)
    assert (first.transport.cc, second.transport.cc) == ("reno", "ccp:reno")
    assert first.neutral("transport.cc") == second.neutral("transport.cc")
    assert len({spec.seed for spec in specs}) == 6


def test_a_hundred_thousand_flows_fill_half_of_the_link() -> None:
    spec = points_of(FIGURE, profile="paper")[0]
    network = topos.build(spec.topology.kind, spec.topology.params)
    seconds = spec.warmup_s + spec.seconds
    seed = sub_seed(spec.seed, "workload")
    flows = matrices.build(
        spec.workload.matrix, network, spec.workload.params, seed, Traffic(seconds, spec.link.rate_mbps)
    )
    assert len(flows) == pytest.approx(100_000, rel=0.05)
    assert len({flow.src for flow in flows}) == SERVERS
    assert 4 * spec.link.delay_us == 100_000


def test_flows_of_one_window_take_the_same_time() -> None:
    results = [simulate(spec) for spec in points_of(FIGURE, seeds="1", seconds="2", warmup="0.5")[:2]]
    small = [
        {f.flow: f.completed_s for f in result.flows if 0 < f.size_bytes < 2000 and f.start_s >= 0}
        for result in results
    ]
    known = [number for number in small[0] if small[0][number] < 10 and small[1][number] < 10]
    assert len(known) > 50
    alike = sum(small[0][number] == pytest.approx(small[1][number], rel=0.05) for number in known)
    assert alike > 0.9 * len(known)
