"""What .ci/smoke.py makes of a sweep: noise is a warning, what is wrong twice is an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from model.reasons import OTHER
from tests.setup.smoke_module import smoke_module

OK = {
    "transport": "mptcp", "subflows": "8", "workload": "one_to_one", "status": "ok", "kinds": "",
    "reasons": "", "goodput_mbps_mean": "9", "rate_mbps": "10",
}  # fmt: skip
NOISY = {**OK, "status": "suspect", "kinds": "late, settling", "reasons": "no CPU was left"}


@pytest.fixture
def smoke() -> ModuleType:
    return smoke_module()


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
