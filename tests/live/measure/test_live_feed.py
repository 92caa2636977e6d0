"""A run between real hosts reports its state every second, with the counts of its own tables."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from engines.emulation.engine import MininetEngine
from engines.engine import Silent
from model.result import Instant, RunResult
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec

pytestmark = [pytest.mark.emulation]

SPEC = RunSpec(
    link=LinkSpec(10.0),
    topology=TopologySpec("fat_tree", {"k": 4}),
    transport=TransportSpec(2, "lia"),
    workload=WorkloadSpec("one_to_one"),
    warmup_s=2.0,
    seconds=4.0,
    sampling=SamplingSpec(sockets_ms=500),
)


class Following(Silent):
    """An observer that keeps the states that a run reports."""

    def __init__(self) -> None:
        self.seen: list[Instant] = []

    def instant(self, seen: Instant) -> None:
        self.seen.append(seen)


def followed(spec: RunSpec, raw: Path) -> tuple[list[Instant], RunResult]:
    engine, observer = MininetEngine(), Following()
    engine.check(spec)
    try:
        result = engine.run(spec, observer, raw)
    finally:
        engine.close()
    return observer.seen, result


def test_a_real_run_shows_what_it_stores(tmp_path: Path) -> None:
    seen, result = followed(dataclasses.replace(SPEC, seed=3), tmp_path)
    assert len(seen) >= 6 and seen[0].t_s < 0 < seen[-1].t_s
    assert all(np.diff([each.t_s for each in seen]) > 0)
    last, first = seen[-1], seen[0]
    assert last.windows is not None and len(last.windows.flow) >= 2 * 16
    assert (last.windows.cwnd_pkts > 0).all() and (last.windows.srtt_ms > 0).any()
    assert (last.sent_bytes >= first.sent_bytes).all() and last.sent_bytes.sum() > first.sent_bytes.sum()
    stored, times = result.samples["ports"], np.unique(result.samples["links"]["t_s"])
    counted = last.drops - seen[-4].drops
    found = stored["t_s"] > times[-4]
    ports = np.bincount(stored["port"][found], weights=stored["drops"][found], minlength=len(counted))
    assert np.array_equal(ports, counted)
    assert stored["queued_pkts"].max() <= SPEC.link.queue_pkts + 1
