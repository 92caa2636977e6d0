"""What .ci/smoke.py makes of a sweep and of an IMS: noise is a warning, what is wrong twice is an error."""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from model.reasons import OTHER

OK = {
    "transport": "mptcp", "subflows": "8", "workload": "one_to_one", "status": "ok", "kinds": "",
    "reasons": "", "goodput_mbps_mean": "9", "rate_mbps": "10",
}  # fmt: skip
NOISY = {**OK, "status": "suspect", "kinds": "late, settling", "reasons": "no CPU was left"}


@pytest.fixture
def smoke() -> ModuleType:
    """The program as a module, executed anew, so that a test may change its functions."""
    spec = importlib.util.spec_from_file_location("smoke", Path(__file__).parents[2] / ".ci" / "smoke.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def swept(
    smoke: ModuleType, patch: pytest.MonkeyPatch, *attempts: Sequence[dict[str, str]], unfit: int = 0
) -> tuple[int, list[Sequence[str]]]:
    """Return the result of a sweep of two points, and the commands that it ran."""
    ran: list[Sequence[str]] = []

    def run(_results: Path, command: Sequence[str]) -> int:
        ran.append(command)
        return smoke.UNFIT if len(ran) <= unfit else 1

    def read(_folder: Path) -> Any:
        return attempts[len(ran) - 1 - unfit]

    patch.setattr(smoke, "run", run)
    patch.setattr(smoke, "read", read)
    return smoke.sweep(Path("nowhere"), ("refabric",), 2), ran


@pytest.mark.parametrize("rows", [(OK, OK), (NOISY, OK)])
def test_noise_is_no_error_and_nothing_runs_again(
    smoke: ModuleType, monkeypatch: pytest.MonkeyPatch, rows: Sequence[dict[str, str]]
) -> None:
    assert swept(smoke, monkeypatch, rows) == (0, [("refabric",)])


@pytest.mark.parametrize(
    "wrong",
    [
        (OK,),
        (OK, {**OK, "status": "failed"}),
        (OK, {**NOISY, "kinds": OTHER}),
        (OK, {**OK, "goodput_mbps_mean": "11"}),
        (OK, {**OK, "goodput_mbps_mean": "0"}),
    ],
)
def test_what_is_wrong_twice_is_an_error(
    smoke: ModuleType, monkeypatch: pytest.MonkeyPatch, wrong: Sequence[dict[str, str]]
) -> None:
    assert swept(smoke, monkeypatch, wrong, wrong) == (1, [("refabric",)] * 2)
    assert swept(smoke, monkeypatch, wrong, (OK, NOISY)) == (0, [("refabric",)] * 2)


def test_an_unfit_machine_has_a_second_attempt_at_a_fixed_rate(
    smoke: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, ran = swept(smoke, monkeypatch, (OK, OK), unfit=1)
    assert code == 0
    assert ran[1] == ("refabric", "--rate", str(smoke.FIXED_RATE_MBPS))
    assert swept(smoke, monkeypatch, unfit=2)[0] == 1


def point_of(folder: Path, names: str = "p1 s1", status: str = "ok", **metrics: float) -> dict[str, Any]:
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
    assert smoke.sip_problems(tmp_path, point_of(tmp_path)) == []
    (problem,) = smoke.sip_problems(tmp_path, point_of(tmp_path, **wrong))
    assert words in problem


def test_a_busy_machine_excuses_order_and_load_but_no_path(smoke: ModuleType, tmp_path: Path) -> None:
    late = point_of(tmp_path, status="suspect", scscf_onset_s=8.0, calls_offered_per_s=60.0)
    assert smoke.sip_problems(tmp_path, late) == []
    assert smoke.sip_problems(tmp_path, point_of(tmp_path, "p1 s1 s2", status="suspect"))
