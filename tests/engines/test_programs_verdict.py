"""What engines ask of programs before anything starts, their metrics, and the verdict on them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from common.errors import HostUnfitError, UsageError
from engines import app
from engines.registry import make
from model.reasons import NO_DATA, PROGRAMS, SATURATED
from model.result import RunResult, Status, Table
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec


def spec_of(groups: list[dict[str, Any]], files: dict[str, str] | None = None, **more: Any) -> RunSpec:
    programs = json.dumps({"programs": groups, "files": files or {}})
    return RunSpec(
        LinkSpec(10.0), TopologySpec("star", {"n": 3}), TransportSpec(1),
        WorkloadSpec("app", {"name": "a.toml", "programs": programs}), warmup_s=0.0, seconds=2.0,
    ).changed(more)  # fmt: skip


def check(spec: RunSpec) -> None:
    app.check(spec, spec.network())


def test_programs_that_are_there_are_accepted() -> None:
    check(spec_of([{"name": "a", "run": ["sh", "-c", "true"]}, {"name": "b", "run": ["/bin/sh"]}]))
    check(spec_of([{"name": "a", "run": ["{python}", "client.py"]}]))
    check(spec_of([{"name": "a", "run": ["./client.py"]}], {"client.py": "#!/usr/bin/python3\n"}))


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("no-such-program", {}, r"programs\.a: the program no-such-program is missing; install it"),
        ("no-such-program", {"package": "nope"}, "missing; run: sudo apt-get install nope"),
        ("/bin/no-such-program", {}, "/bin/no-such-program is missing"),
        ("./other", {}, r"\./other is missing"),
        ("bin/sh", {}, "bin/sh is missing"),
    ],
)
def test_a_missing_program_is_refused(name: str, more: dict[str, str], words: str) -> None:
    with pytest.raises(HostUnfitError, match=words):
        check(spec_of([{"name": "a", "run": [name], **more}], {"client.py": ""}))


@pytest.mark.parametrize(
    ("group", "more", "words"),
    [
        ({"run": ["client.py"]}, {}, r"client\.py is one of its files: write \./client\.py"),
        ({"run": ["sh"], "start_s": -1.0}, {}, "before the warm-up of 0 s"),
        ({"run": ["sh"], "start_s": 2.0}, {}, "give more --seconds"),
        ({"run": ["sh"], "spread_s": 4.0}, {}, "starts 2.67 s after"),
        ({"run": ["sh"]}, {"link.discipline": "pfabric"}, "programs send no ranks"),
    ],
)
def test_what_cannot_run_is_refused(group: dict[str, Any], more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(spec_of([{"name": "a", **group}], {"client.py": ""}, **more))


@pytest.mark.parametrize("engine", ["simulator", "flow-level", "max-min", "ideal"])
def test_engines_without_a_kernel_refuse_programs(engine: str) -> None:
    with pytest.raises(
        UsageError, match=f"--engine {engine} cannot run it; choose --engine mininet or linux"
    ):
        make(engine).check(spec_of([{"name": "a", "run": ["sh"]}], engine=engine))


def values(rows: list[tuple[float, str, str, float]]) -> Table:
    found = [(t_s, group, 0, "h", name, value) for t_s, group, name, value in rows]
    return Table.from_rows(tuple(app.TABLES["values"]), found)


def test_metrics_are_of_values_in_the_window_by_group_and_name() -> None:
    rows = [(float(t), "a", "ms", float(t)) for t in range(-5, 100)]
    found = app.value_metrics(values([*rows, (1.0, "b", "ms", 7.0)]), 50.0)
    assert found["a_ms_count"] == 100 and found["a_ms_per_s"] == 2
    assert found["a_ms_mean"] == pytest.approx(49.5) and found["a_ms_max"] == 99
    assert found["a_ms_p99"] == pytest.approx(np.percentile(range(100), 99))
    assert found["b_ms_mean"] == 7
    assert app.value_metrics(values([]), 1.0) == {}


GROUPS = [{"name": "a", "run": ["sh"], "measure": "json", "ends_run": True}]
GOOD = {"a_ms_count": 3.0, "programs_unfinished": 0.0, "programs_waited_pct": 1.0}


@pytest.mark.parametrize(
    ("metrics", "status", "kinds"),
    [
        (GOOD, Status.OK, ()),
        ({**GOOD, "programs_unfinished": 2.0}, Status.SUSPECT, (PROGRAMS,)),
        ({**GOOD, "programs_waited_pct": 20.0}, Status.SUSPECT, (SATURATED,)),
        ({"programs_unfinished": 1.0}, Status.FAILED, (NO_DATA,)),
    ],
)
def test_the_verdict_is_on_what_programs_did(
    metrics: dict[str, float], status: Status, kinds: tuple[str, ...]
) -> None:
    judged = app.verdict(RunResult(Status.OK, metrics=metrics), spec_of(GROUPS))
    assert (judged.status, tuple(reason.kind for reason in judged.reasons)) == (status, kinds)


def test_programs_count_in_the_memory_of_a_point() -> None:
    one, many = spec_of(GROUPS), spec_of([{**GROUPS[0], "each": 10}])
    more = app.memory_mb(many, many.network()) - app.memory_mb(one, one.network())
    assert more == 27 * app.PROGRAM_MB
    assert app.memory_mb(dataclasses.replace(one, workload=WorkloadSpec()), one.network()) == 0
