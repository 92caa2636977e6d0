"""One point: the kinds of its failures, what is audited, and that its flows are drawn once."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import topos
from common.errors import RunError
from engines.engine import Observer, Silent
from engines.registry import make
from harness.execute.point import Task, attempt, audited, fail, run_task
from harness.plan.machines import unfit_here
from harness.results.store import Store
from harness.watch.page import scene_of
from model import flows
from model.reasons import BUG, ENDED, ERROR, IMPOSSIBLE, NO_DATA, STARVED, UNSTATED, Reason, blames_machine
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec, sub_seed
from tests.support.fake_engine import FakeEngine
from tests.support.stored_points import result_of, spec_of
from workloads import matrices
from workloads.matrices import MATRICES

MISLEADING = "CPU: no idle time left"
"""The text of a kind that blames the machine, in older versions."""


class Raising(FakeEngine):
    """An engine whose points end with this error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        del spec, observer, raw
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RunError(MISLEADING), ERROR, MISLEADING),
        (ValueError(MISLEADING), BUG, f"a bug: ValueError: {MISLEADING} (traceback in raw/traceback.txt)"),
    ],
)
def test_an_error_is_a_kind_of_its_own(error: Exception, kind: str, text: str, tmp_path: Path) -> None:
    result = attempt(Raising(error), spec_of(), Silent(), tmp_path)
    assert (result.status, result.reasons) == (Status.FAILED, (Reason(kind, text),))
    assert not blames_machine(result.reasons)


def test_a_process_that_ended_is_a_kind_of_its_own(tmp_path: Path) -> None:
    done = fail(Task(spec_of()), Reason(ENDED, MISLEADING), Store(tmp_path, "test"), 1.0)
    assert done.point is not None
    assert done.point.reasons == (Reason(ENDED, MISLEADING),), "also after it was stored and read"


def without_goodput(result: RunResult) -> RunResult:
    first, *others = result.flows
    return dataclasses.replace(result, flows=(dataclasses.replace(first, goodput_mbps=math.nan), *others))


def failed(result: RunResult) -> RunResult:
    return dataclasses.replace(result, status=Status.FAILED)


@pytest.mark.parametrize(
    ("damaged", "matrix", "reason"),
    [
        (without_goodput, "one_to_one", Reason(NO_DATA, "flow 0 has no goodput")),
        (lambda r: dataclasses.replace(r, flows=()), "one_to_one", Reason(NO_DATA, "no flow has data")),
        (lambda r: r, "sip", Reason(NO_DATA, "no call was offered")),
        (failed, "one_to_one", Reason(UNSTATED, "the engine gave no reason")),
    ],
)
def test_missing_data_is_a_kind_of_its_own(
    damaged: Callable[[RunResult], RunResult], matrix: str, reason: Reason
) -> None:
    spec = dataclasses.replace(spec_of(), workload=WorkloadSpec(matrix))
    result = audited(damaged(result_of([1.0, 2.0])), spec)
    assert (result.status, result.reasons) == (Status.FAILED, (reason,))


def test_a_suspect_point_without_a_reason_says_so() -> None:
    result = audited(dataclasses.replace(result_of([1.0]), status=Status.SUSPECT, reasons=()), spec_of())
    assert [reason.kind for reason in result.reasons] == [UNSTATED]


def test_flows_above_their_links_make_a_point_suspect_and_one_about_completion_times_doubtful() -> None:
    spec = spec_of(1, rate_mbps=100.0)
    endless = result_of([50.0, 109.0])
    assert [reason.kind for reason in audited(endless, spec).reasons] == [IMPOSSIBLE]
    short, long = endless.flows
    sized = dataclasses.replace(endless, flows=(dataclasses.replace(short, size_bytes=1000), long))
    mixed = audited(sized, spec)
    assert (mixed.status, [caution.kind for caution in mixed.cautions]) == (Status.OK, [IMPOSSIBLE])


def test_a_starving_flow_is_a_caution_and_a_silent_window_no_result() -> None:
    spec = spec_of(1, rate_mbps=100.0)
    starving = audited(result_of([95.0, 0.03]), spec)
    assert (starving.status, [caution.kind for caution in starving.cautions]) == (Status.OK, [STARVED])
    silent = audited(result_of([0.0, 0.0]), spec)
    assert (silent.status, [reason.kind for reason in silent.reasons]) == (Status.FAILED, [NO_DATA])


POISSON = WorkloadSpec("poisson", {"load": 20})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the seeds of all draws in the test."""
    seeds: list[int] = []

    def count(name: str) -> None:
        matrix = MATRICES[name]

        @functools.wraps(matrix.draw)
        def counted(hosts: list[str], seed: int, *more: Any, **params: Any) -> Any:
            seeds.append(seed)
            return matrix.draw(hosts, seed, *more, **params)

        monkeypatch.setitem(MATRICES, name, dataclasses.replace(matrix, draw=counted))

    flows._planned.cache_clear()
    flows._drawn.cache_clear()
    count("poisson")
    count("one_to_one")
    return seeds


def permutation_spec(engine: str, workload: WorkloadSpec = POISSON, seed: int = 7, **fields: Any) -> RunSpec:
    return RunSpec(
        LinkSpec(100.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(2, "lia"), workload,
        engine=engine, warmup_s=0.1, seconds=0.2, seed=seed, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [
        permutation_spec("simulator"),
        permutation_spec("flow-level", WorkloadSpec("one_to_one")),
        permutation_spec("ideal"),
    ],
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
    assert drawn.count(sub_seed(spec.seed, "workload")) == 1


def test_other_points_and_other_networks_draw_their_own(drawn: list[int]) -> None:
    first = [scene_of(permutation_spec("simulator", seed=seed)) for seed in (1, 2)]
    again = [scene_of(permutation_spec("simulator", seed=seed)) for seed in (1, 2)]
    assert first[0].flows != first[1].flows
    assert [scene.flows for scene in first] == [scene.flows for scene in again]
    assert len(drawn) == len(set(drawn)) == 2


def test_points_that_differ_in_their_transport_share_their_flows(drawn: list[int]) -> None:
    spec, seeds = permutation_spec("simulator"), range(8)
    for subflows in (1, 2, 4):
        transport = dataclasses.replace(spec.transport, subflows=subflows)
        points = [dataclasses.replace(spec, transport=transport, seed=seed) for seed in seeds]
        assert unfit_here(make("simulator"), points) == {}
    assert sorted(drawn) == sorted(sub_seed(seed, "workload") for seed in seeds)


def test_large_draws_do_not_fill_memory(drawn: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "_MAX_FLOWS_KEPT", 1)
    for seed in (1, 2, 3, 4, 5, 6, 1):
        make("simulator").check(permutation_spec("simulator", seed=seed))
    assert len(drawn) == 7 and len(matrices._kept) <= 4


def test_the_same_spec_on_another_network_draws_again(drawn: list[int]) -> None:
    spec, star = permutation_spec("simulator"), topos.build("star", {"n": 4})
    tree = scene_of(spec).topology
    sources = [{flow.src for flow in flows.planned_flows(spec, network)} for network in (tree, star)]
    assert len(drawn) == 2
    assert sources[0].isdisjoint(sources[1])


def test_sampling_does_not_change_flows(drawn: list[int]) -> None:
    for sampling in (SamplingSpec(), SamplingSpec(queues_ms=100)):
        scene_of(permutation_spec("simulator", sampling=sampling))
    assert len(drawn) == 1
