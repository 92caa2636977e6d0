"""A point that fails while it runs has a reason of a kind of its own, whatever its text begins with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import RunError
from engines.engine import Observer, Silent
from engines.fake import FakeEngine
from harness.execute.point import Task, attempt, audited, fail
from harness.results.store import Store
from model.reasons import (
    BUG,
    ENDED,
    ERROR,
    IMPOSSIBLE,
    NO_DATA,
    STARVED,
    UNSTATED,
    Reason,
    blames_machine,
)
from model.result import RunResult, Status
from model.spec import RunSpec, WorkloadSpec
from tests.support.stored_points import result_of, spec_of

MISLEADING = "CPU: no idle time left"
"""The text of a kind that blames the machine, in older versions."""


class Raising(FakeEngine):
    """An engine whose points end with this error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        del spec, observer, raw
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RunError(MISLEADING), ERROR, MISLEADING),
        (ValueError(MISLEADING), BUG, f"a bug: ValueError: {MISLEADING} (traceback in raw/traceback.txt)"),
    ],
)
def test_an_error_is_a_kind_of_its_own(error: Exception, kind: str, text: str, tmp_path: Path) -> None:
    result = attempt(Raising(error), spec_of(), Silent(), tmp_path)
    assert (result.status, result.reasons) == (Status.FAILED, (Reason(kind, text),))
    assert not blames_machine(result.reasons)


def test_a_process_that_ended_is_a_kind_of_its_own(tmp_path: Path) -> None:
    done = fail(Task(spec_of()), Reason(ENDED, MISLEADING), Store(tmp_path, "test"), 1.0)
    assert done.point is not None
    assert done.point.reasons == (Reason(ENDED, MISLEADING),), "also after it was stored and read"


def without_goodput(result: RunResult) -> RunResult:
    first, *others = result.flows
    return dataclasses.replace(result, flows=(dataclasses.replace(first, goodput_mbps=math.nan), *others))


@pytest.mark.parametrize(
    ("damaged", "matrix", "reason"),
    [
        (without_goodput, "one_to_one", Reason(NO_DATA, "flow 0 has no goodput")),
        (lambda r: dataclasses.replace(r, flows=()), "one_to_one", Reason(NO_DATA, "no flow has data")),
        (lambda r: r, "sip", Reason(NO_DATA, "no call was offered")),
        (
            lambda r: dataclasses.replace(r, status=Status.FAILED),
            "one_to_one",
            Reason(UNSTATED, "the engine gave no reason"),
        ),
    ],
)
def test_missing_data_is_a_kind_of_its_own(
    damaged: Callable[[RunResult], RunResult], matrix: str, reason: Reason
) -> None:
    spec = dataclasses.replace(spec_of(), workload=WorkloadSpec(matrix))
    result = audited(damaged(result_of([1.0, 2.0])), spec)
    assert (result.status, result.reasons) == (Status.FAILED, (reason,))


def test_a_suspect_point_without_a_reason_says_so() -> None:
    result = audited(dataclasses.replace(result_of([1.0]), status=Status.SUSPECT, reasons=()), spec_of())
    assert [reason.kind for reason in result.reasons] == [UNSTATED]


def test_flows_above_their_links_make_a_point_suspect_and_one_about_completion_times_doubtful() -> None:
    spec = spec_of(1, rate_mbps=100.0)
    endless = result_of([50.0, 109.0])
    assert [reason.kind for reason in audited(endless, spec).reasons] == [IMPOSSIBLE]
    short, long = endless.flows
    sized = dataclasses.replace(endless, flows=(dataclasses.replace(short, size_bytes=1000), long))
    mixed = audited(sized, spec)
    assert (mixed.status, [caution.kind for caution in mixed.cautions]) == (Status.OK, [IMPOSSIBLE])


def test_a_starving_flow_is_a_caution_and_a_silent_window_no_result() -> None:
    spec = spec_of(1, rate_mbps=100.0)
    starving = audited(result_of([95.0, 0.03]), spec)
    assert (starving.status, [caution.kind for caution in starving.cautions]) == (Status.OK, [STARVED])
    silent = audited(result_of([0.0, 0.0]), spec)
    assert (silent.status, [reason.kind for reason in silent.reasons]) == (Status.FAILED, [NO_DATA])
