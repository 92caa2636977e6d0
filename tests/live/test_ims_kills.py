"""Killed programs of a real IMS: the command ends by itself, nothing is left, and the next run works."""

from __future__ import annotations

from typing import Any

import pytest

from engines.emulation.ims import checks
from engines.emulation.sandbox.isolation import spawn_inside
from tests.support.scenarios.ims_kills import CELLS

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(bool(checks.missing()), reason=f"missing programs: run {checks.INSTALL}"),
]


def test_nothing_is_left_of_a_killed_ims_and_the_next_run_works() -> None:
    seen: list[dict[str, Any]] = []
    spawn_inside(
        "tests.support.scenarios.ims_kills:inside",
        {"cells": CELLS},
        deadline_s=600,
        on_report=seen.append,
    )
    assert [report["cell"] for report in seen] == [
        *(f"{role} at {phase}" for role, phase in CELLS),
        "undisturbed",
    ]
    assert [fault for report in seen for fault in report["faults"]] == []
