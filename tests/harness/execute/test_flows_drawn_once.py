"""The steps of a point's run ask for its flows one after another; they are drawn once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topos
from engines.engine import Silent
from engines.registry import make
from harness.execute.point import Task, run_task
from harness.results.store import Store
from harness.watch.scene import scene_of
from model import flows
from model.result import Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec
from workloads.matrices import build

POISSON = WorkloadSpec("poisson", {"load": 20})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the seeds of all draws in the test."""
    seeds: list[int] = []

    def counted(name: str, topology: Any, params: Any, seed: int, traffic: Any) -> Any:
        seeds.append(seed)
        return build(name, topology, params, seed, traffic)

    flows._planned.cache_clear()
    flows._drawn.cache_clear()
    monkeypatch.setattr(flows, "build", counted)
    return seeds


def spec_of(engine: str, workload: WorkloadSpec = POISSON, seed: int = 7, **fields: Any) -> RunSpec:
    return RunSpec(
        LinkSpec(100.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(2, "lia"), workload,
        engine=engine, warmup_s=0.1, seconds=0.2, seed=seed, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [spec_of("simulator"), spec_of("flow-level", WorkloadSpec("one_to_one")), spec_of("ideal")],
    ids=lambda spec: spec.engine,
)
def test_a_point_that_is_checked_run_and_shown_draws_its_flows_once(
    spec: RunSpec, drawn: list[int], tmp_path: Path
) -> None:
    engine = make(spec.engine)
    engine.check(spec)
    engine.memory_mb(spec)
    done = run_task(Task(spec), engine, Store(tmp_path, "test"), Silent())
    assert done.attempt.status is Status.OK and done.point is not None and done.point.flows
    scene_of(spec)
    assert len(drawn) == 1


def test_other_points_and_other_networks_draw_their_own(drawn: list[int]) -> None:
    first = [scene_of(spec_of("simulator", seed=seed)) for seed in (1, 2)]
    again = [scene_of(spec_of("simulator", seed=seed)) for seed in (1, 2)]
    assert first[0].flows != first[1].flows
    assert [scene.flows for scene in first] == [scene.flows for scene in again]
    assert len(drawn) == len(set(drawn)) == 2, "the flows of two points are kept"
    scene_of(spec_of("simulator", seed=3))
    scene_of(spec_of("simulator", seed=1))
    assert len(drawn) == 4, "and of no more"


def test_the_same_spec_on_another_network_draws_again(drawn: list[int]) -> None:
    spec, star = spec_of("simulator"), topos.build("star", {"n": 4})
    tree = scene_of(spec).topology
    sources = [{flow.src for flow in flows.planned_flows(spec, network)} for network in (tree, star)]
    assert len(drawn) == 2
    assert sources[0].isdisjoint(sources[1])


def test_sampling_does_not_change_flows(drawn: list[int]) -> None:
    for sampling in (SamplingSpec(), SamplingSpec(queues_ms=100)):
        scene_of(spec_of("simulator", sampling=sampling))
    assert len(drawn) == 1
