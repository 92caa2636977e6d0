"""Runs one point of a sweep: run it, check its result, store it. Works in any process."""

from __future__ import annotations

import dataclasses
import errno
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from common import files
from common.errors import HostUnfitError, RefabricError, StoreError
from engines.engine import Engine, Observer
from engines.workload import kind_of
from harness.baseline import off_by_arithmetic
from harness.results import run_json
from harness.results.point_results import PointResult
from harness.results.run_json import Attempt
from harness.results.store import PointWriter, Store
from harness.watch.feed import followed
from model.reasons import BASELINE, BUG, ERROR, UNSTATED, Reason
from model.result import RunResult, Status
from model.spec import RunSpec

NO_REASON = (Reason(UNSTATED, "the engine gave no reason"),)


@dataclass(frozen=True)
class Task:
    """A point to run. `rate_how` says how its link rate was chosen.

    `keeps_earlier`: there is a finished result, which a failure does not replace. `attempts` are the earlier
    attempts if this is a retry: its result replaces the stored one only if it is the attempt that counts.
    """

    spec: RunSpec
    rate_how: str = ""
    keeps_earlier: bool = False
    attempts: tuple[Attempt, ...] = ()

    def keeps_stored(self, made: Attempt) -> bool:
        """Return whether the stored result stays if this attempt ends as `made`."""
        if not self.attempts:
            return made.status is Status.FAILED and self.keeps_earlier
        return run_json.counting_attempt((*self.attempts, made)) <= len(self.attempts)


@dataclass(frozen=True)
class TaskEnd:
    """A task has ended with this attempt: the point as stored, or None if an earlier result stays."""

    task: Task
    point: PointResult | None
    attempt: Attempt


def run_task(task: Task, engine: Engine, where: Store, observer: Observer) -> TaskEnd:
    """Run the point and store it. Raises the errors that end a sweep: HostUnfitError, StoreError,
    KeyboardInterrupt."""
    began, started_at = time.monotonic(), run_json.utc_now()
    with where.writing(task.spec) as writer:
        with followed(where, task.spec, observer) as following:
            result = attempt(engine, task.spec, following, writer.raw)
        return _stored(task, result, writer, time.monotonic() - began, started_at)


def _stored(task: Task, result: RunResult, writer: PointWriter, elapsed_s: float, started_at: str) -> TaskEnd:
    made = Attempt.of(result, elapsed_s, started_at)
    if made.status is Status.OK and (deviation := off_by_arithmetic(task.spec, made.goodput_mbps)):
        made = dataclasses.replace(made, reasons=(Reason(BASELINE, deviation),))
    if task.keeps_stored(made):
        return TaskEnd(task, None, made)
    result = dataclasses.replace(result, provenance={**result.provenance, "rate_choice": task.rate_how})
    stored = writer.commit(result, hosts_of(task.spec), elapsed_s, (*task.attempts, made))
    return TaskEnd(task, stored, made)


def fail(task: Task, reason: Reason, where: Store, elapsed_s: float) -> TaskEnd:
    """Store the point as failed for `reason`, which its own process could not. Raises StoreError."""
    with where.writing(task.spec) as writer:
        return _stored(
            task, RunResult(Status.FAILED, (reason,)), writer, elapsed_s, run_json.utc_ago(elapsed_s)
        )


def hosts_of(spec: RunSpec) -> int:
    """Return the number of hosts of the point's topology. Raises UsageError for an impossible topology."""
    return len(spec.network().hosts)


def attempt(engine: Engine, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run one point; turn an error into a failed result with the error as its reason.

    Raises only the errors that end the sweep: HostUnfitError, StoreError, KeyboardInterrupt.
    """
    try:
        return audited(engine.run(spec, observer, raw), spec)
    except (HostUnfitError, StoreError):
        raise
    except RefabricError as error:
        return RunResult(Status.FAILED, (Reason(ERROR, one_line(str(error))),))
    except Exception as error:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise files.store_error(f"writing below {raw.resolve()}", error) from error
        # A bug fails its own point and not the whole sweep; the traceback is stored with the point.
        with files.storing(f"writing {raw.resolve() / 'traceback.txt'}"):
            (raw / "traceback.txt").write_text("".join(traceback.format_exception(error)))
        reason = f"a bug: {type(error).__name__}: {error} (traceback in raw/traceback.txt)"
        return RunResult(Status.FAILED, (Reason(BUG, one_line(reason)),))


def audited(result: RunResult, spec: RunSpec) -> RunResult:
    """Return `result` with the verdict of its kind of workload, unless it has failed already."""
    if result.status is Status.FAILED:
        return result if result.reasons else dataclasses.replace(result, reasons=NO_REASON)
    if result.status is Status.SUSPECT and not result.reasons:
        result = dataclasses.replace(result, reasons=NO_REASON)
    return kind_of(spec).verdict(result, spec)


def one_line(text: str) -> str:
    """Return `text` on one line, with single spaces."""
    return " ".join(text.split())
