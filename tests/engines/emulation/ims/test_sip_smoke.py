"""The checks of .ci/smoke.py on points between real SIP programs: each can fail."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.setup.smoke_module import smoke_module


@pytest.fixture(scope="module")
def smoke() -> ModuleType:
    return smoke_module()


def point(folder: Path, names: str = "p1 s1", status: str = "ok", **metrics: float) -> dict[str, Any]:
    (folder / "samples").mkdir(exist_ok=True)
    rows = "".join(f"1,{name},50\n" for name in names.split())
    with gzip.open(folder / "samples/components.csv.gz", "wt") as file:
        file.write("t_s,name,busy_pct\n" + rows)
    usual = {"calls_offered_per_s": 64.9, "scscf_onset_s": 3.5, "pcscf_onset_s": 7.0}
    reasons = [{"kind": "saturated"}] if status == "suspect" else []
    workload = {"params": {"calls": 130}}
    return {
        "spec": {"workload": workload}, "status": status, "reasons": reasons, "metrics": {**usual, **metrics},
    }  # fmt: skip


def test_a_right_point_has_no_problems(smoke: ModuleType, tmp_path: Path) -> None:
    assert smoke.sip_problems(tmp_path, point(tmp_path)) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"names": "p1 s1 s2"}, "went through"),
        ({"calls_offered_per_s": 60.0}, "60.0 calls/s, not 65.0"),
        ({"scscf_onset_s": 8.0}, "scscf did not overload first"),
        ({"status": "failed"}, "failed"),
    ],
)
def test_a_problem_is_reported(smoke: ModuleType, tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    (problem,) = smoke.sip_problems(tmp_path, point(tmp_path, **wrong))
    assert words in problem


def test_a_busy_machine_excuses_order_and_load_but_no_path(smoke: ModuleType, tmp_path: Path) -> None:
    late = point(tmp_path, status="suspect", scscf_onset_s=8.0, calls_offered_per_s=60.0)
    assert smoke.sip_problems(tmp_path, late) == []
    assert smoke.sip_problems(tmp_path, point(tmp_path, "p1 s1 s2", status="suspect"))
