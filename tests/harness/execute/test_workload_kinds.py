"""Kinds of workloads: those of the tree, and a third one that a package and a line of MATRICES add."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import RunError, UsageError
from engines.emulation import programs
from engines.emulation.sandbox.inside import Inside
from engines.engine import Silent
from engines.registry import ENGINES, make
from harness.execute.point import Task, audited, run_task
from harness.results.store import Store, load
from harness.watch.page import is_drawable
from model.reasons import NO_DATA
from model.result import Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.echo import COLUMNS, ECHO, NAME, result_of
from workloads import matrices
from workloads.matrices import MATRICES


def spec_of(text: str = NAME, engine: str = "simulator") -> RunSpec:
    name, params = matrices.parse(text)
    return RunSpec(
        LinkSpec(100.0, delay_us=50.0), TopologySpec("star", {"n": 4}), TransportSpec(1),
        WorkloadSpec(name, params), engine=engine, warmup_s=0.5, seconds=2.0,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MATRICES, NAME, ECHO)


@pytest.mark.parametrize("package", sorted({each.kind for each in MATRICES.values()}))
def test_a_kind_names_engines_and_modules_that_there_are(package: str) -> None:
    kind = import_module(package).KIND
    assert kind.engines.keys() <= ENGINES.keys()
    for name in kind.engines.values():
        module = import_module(name)
        assert all(callable(getattr(module, part)) for part in ("check", "memory_mb", "expected_s", "run"))


def test_a_third_kind_runs_is_stored_and_read(tmp_path: Path) -> None:
    spec, engine, store = spec_of("echo:50"), make("simulator"), Store(tmp_path, "test")
    engine.check(spec)
    assert engine.memory_mb(spec) == 1
    assert engine.expected_s(spec) == 0.01
    stored = run_task(Task(spec), engine, store, Silent()).point
    (point,) = load(tmp_path)
    assert stored is not None and stored.spec == point.spec
    assert point.status is Status.OK
    assert point.metric("echoes") == 100
    assert point.metric("echo_ms") == pytest.approx(0.2), "two links of 50 us there, and two back"
    assert tuple(point.sample("echoes").columns) == tuple(COLUMNS["echoes"])
    assert not is_drawable(spec)


def test_its_verdict_is_its_own() -> None:
    spec = spec_of()
    for echoes, status in ((40, Status.OK), (19, Status.SUSPECT), (0, Status.FAILED)):
        found = audited(result_of((0.1 * n, 1.0) for n in range(echoes)), spec)
        assert found.status is status
        assert [reason.kind for reason in found.reasons] == [NO_DATA] * (status is not Status.OK)


@pytest.mark.parametrize("engine", ["linux", "flow-level", "max-min", "ideal"])
def test_other_engines_refuse_it_and_name_those_that_run_it(engine: str) -> None:
    with pytest.raises(UsageError, match=f"--engine {engine} cannot run it.* simulator or mininet"):
        make(engine).check(spec_of(engine=engine))


def test_a_program_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: programs.HostNetwork) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    no_hosts = SimpleNamespace(host_refs=list)
    monkeypatch.setattr(programs, "FabricDataPlane", lambda *_: None)
    monkeypatch.setattr(programs, "FabricNet", lambda *_: contextlib.nullcontext(no_hosts))
    monkeypatch.setattr("tests.support.echo.real.on_hosts", refused)
    monkeypatch.setattr(Inside, "report", lambda *_: None)
    with pytest.raises(RunError, match=r"workload echo: a program did not answer: .*Connection refused"):
        programs.run_point(Inside({"spec": spec_of(engine="mininet").to_json()}, -1))
