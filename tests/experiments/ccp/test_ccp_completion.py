"""ccp-completion: what it runs, and how its statements are read off points."""

from __future__ import annotations

from pathlib import Path

import pytest

import topos
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from experiments.ccp.completion import FIGURE, SERVERS, STATEMENTS
from harness.options.options import UserOptions, resolve
from model.result import RunResult
from model.spec import RunSpec, sub_seed
from workloads import matrices
from workloads.flow import Traffic


def completion_points(**given: str) -> list[RunSpec]:
    return FIGURE.points(resolve(UserOptions.of(**given), FIGURE.defaults), lambda _: 192.0)


def test_both_get_the_same_flows() -> None:
    first, second, *_ = specs = completion_points()
    assert (first.transport.cc, second.transport.cc) == ("reno", "ccp:reno")
    assert first.neutral("transport.cc") == second.neutral("transport.cc")
    assert len({spec.seed for spec in specs}) == 6


def test_a_hundred_thousand_flows_fill_half_of_the_link() -> None:
    spec = completion_points(profile="paper")[0]
    network = topos.build(spec.topology.kind, spec.topology.params)
    seconds = spec.warmup_s + spec.seconds
    seed = sub_seed(spec.seed, "workload")
    flows = matrices.build(
        spec.workload.matrix, network, spec.workload.params, seed, Traffic(seconds, spec.link.rate_mbps)
    )
    assert len(flows) == pytest.approx(100_000, rel=0.05)
    assert len({flow.src for flow in flows}) == SERVERS
    assert 4 * spec.link.delay_us == 100_000


def run(spec: RunSpec) -> RunResult:
    engine = SimulatorEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), Path())


def test_flows_of_one_window_take_the_same_time() -> None:
    results = [run(spec) for spec in completion_points(seeds="1", seconds="2", warmup="0.5")[:2]]
    small = [
        {f.flow: f.completed_s for f in result.flows if 0 < f.size_bytes < 2000 and f.start_s >= 0}
        for result in results
    ]
    known = [number for number in small[0] if small[0][number] < 10 and small[1][number] < 10]
    assert len(known) > 50
    alike = sum(small[0][number] == pytest.approx(small[1][number], rel=0.05) for number in known)
    assert alike > 0.9 * len(known)


def test_completion_every_statement_is_about_points_that_run() -> None:
    (spec, *_) = completion_points()
    assert all(row.is_on(spec.topology) for row in STATEMENTS)
    assert {row.workload for row in STATEMENTS} == {
        matrices.label(spec.workload.matrix, spec.workload.params)
    }
