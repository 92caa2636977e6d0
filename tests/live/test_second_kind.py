"""A kind of workload that tests add: its programs run on real hosts, as their record says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.emulation import programs
from engines.emulation.engine import MininetEngine
from engines.emulation.sandbox.inside import WORK
from engines.engine import Silent
from harness.execute.point import Task, run_task
from harness.results.store import Store, load
from model.result import Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.echo import COLUMNS, ECHO, NAME, real
from workloads.matrices import MATRICES

pytestmark = [pytest.mark.emulation, pytest.mark.machine]


def test_a_third_kind_runs_on_real_hosts_and_is_stored(
    engine: MininetEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MATRICES, NAME, ECHO)
    monkeypatch.setattr(programs, "TARGET", f"{real.__name__}:run_point")
    spec = RunSpec(
        LinkSpec(100.0, delay_us=5000.0), TopologySpec("star", {"n": 4}), TransportSpec(1),
        WorkloadSpec(NAME, {"per_s": 20}), warmup_s=0.5, seconds=2.0,
    )  # fmt: skip
    engine.check(spec)
    run_task(Task(spec), engine, Store(tmp_path, "test"), Silent())
    (point,) = load(tmp_path)
    assert point.status is not Status.FAILED, point.reasons
    assert 10 <= (point.metric("echoes") or 0) <= 40
    assert (point.metric("echo_ms") or 0) >= 20, "two links of 5 ms there, and two back"
    assert {"cpu_busy_pct", "waited_pct", "paused_pct"} <= point.metrics.keys()
    echoes = point.sample("echoes")
    assert tuple(echoes.columns) == tuple(COLUMNS["echoes"])
    assert echoes["t_s"].min() >= 0 and echoes["t_s"].max() <= 2.2
    assert not WORK.exists()
