"""Simulated points for the tests of the page that shows them."""

from __future__ import annotations

from pathlib import Path

from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from harness.execute.point import Task, run_task
from harness.results.point_results import PointResult
from harness.results.store import Store
from model.spec import LinkEvent, LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec

EXPERIMENT = "cs244-one-to-one"


def spec_of(
    subflows: int, *, k: int = 4, rate_mbps: float = 10.0, seconds: float = 6.0, cut_s: float | None = None
) -> RunSpec:
    """Return a simulated permutation; the cable p0a0-c0 is cut `cut_s` after the window has opened."""
    warmup_s = 2.0
    return RunSpec(
        link=LinkSpec(rate_mbps),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows, "lia" if subflows > 1 else "reno"),
        workload=WorkloadSpec("one_to_one"),
        engine="simulator",
        warmup_s=warmup_s,
        seconds=seconds,
        sampling=SamplingSpec(sockets_ms=1000),
        events=() if cut_s is None else (LinkEvent(warmup_s + cut_s, "p0a0", "c0"),),
    )


def simulated(results: Path, *specs: RunSpec) -> list[PointResult]:
    """Run and store points as a sweep does."""
    store = Store.open(results, EXPERIMENT)
    engine = SimulatorEngine()
    done = [run_task(Task(spec), engine, store, Silent()) for spec in specs]
    return [each.point for each in done if each.point is not None]
