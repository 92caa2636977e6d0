"""A callee answers every BYE (timer J of RFC 3261), although SIPp's calls end with their last message."""

from __future__ import annotations

from typing import Any

import pytest

from engines.emulation.ims import checks
from engines.emulation.sandbox.isolation import spawn_inside

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(bool(checks.missing()), reason=f"missing programs: run {checks.INSTALL}"),
]


def test_every_bye_is_answered_and_ends_the_repeated_answers_to_the_invite() -> None:
    seen: list[dict[str, Any]] = []
    spawn_inside("tests.support.scenarios.ims_callee:inside", {}, deadline_s=60, on_report=seen.append)
    assert {report["message"]: report["answers"] for report in seen} == {
        "call": ["180 INVITE", "200 INVITE"],
        "first": ["200 BYE"],
        "late ack": [],
        "repeated": ["200 BYE"],
        "of a new transaction": ["200 BYE"],
    }
