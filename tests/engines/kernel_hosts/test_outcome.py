"""Messages of the program that runs the hosts reach the observer, and its result the engine."""

from __future__ import annotations

import pytest

from common.errors import RunError
from engines.kernel_hosts.outcome import Outcome
from engines.kernel_hosts.wire import messages
from model.result import RunResult, Status


class _Heard:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def phase(self, name: str, seconds: float) -> None:
        self.heard.append((name, seconds))

    def note(self, text: str) -> None:
        self.heard.append(text)


def test_phases_and_notes_reach_the_observer_and_the_result_is_kept() -> None:
    observer, result = _Heard(), RunResult(Status.OK)
    outcome = Outcome(observer)
    outcome.take({"phase": "measure", "seconds": 3.0})
    outcome.take({"note": "a flow is slow"})
    for message in messages(result, ()):
        outcome.take(message)
    assert observer.heard == [("measure", 3.0), "a flow is slow"]
    assert outcome.result("guest") == result


def test_an_end_without_a_result_is_an_error_that_names_the_program() -> None:
    with pytest.raises(RunError, match="running the guest: it ended without a result; run the point again"):
        Outcome(_Heard()).result("guest")
