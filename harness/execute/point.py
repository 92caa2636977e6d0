"""Runs one point of a sweep: run it, check its result, store it. Works in any process."""

from __future__ import annotations

import dataclasses
import errno
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.plausibility import impossible, starved
from common import files
from common.errors import HostUnfitError, RefabricError, StoreError
from engines.engine import Engine, Observer
from engines.ims import calls
from harness.baseline import off_by_arithmetic
from harness.results import run_json
from harness.results.point_results import PointResult
from harness.results.run_json import Attempt
from harness.results.store import PointWriter, Store
from harness.watch.feed import followed
from model.reasons import BASELINE, BUG, ERROR, GOODPUT, JAIN, SLOWEST, UNSTATED, Reason
from model.result import FlowRow, RunResult, Status
from model.spec import RunSpec
from workloads.matrices import FLOWS, IMS, kind_of

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
    return VERDICTS[kind_of(spec.workload.matrix)](result, spec)


def verdict_of_flows(result: RunResult, spec: RunSpec) -> RunResult:
    """Return `result`, failed if it has no number or a number about nothing, suspect if flows delivered
    more than links carry, and with a caution if flows starved. Where flows have sizes, the point is about
    completion times, and too much goodput is a caution, too."""
    if lacking := _lack_of_data(result.flows, spec):
        return result.without_data(lacking)
    topology = spec.network()
    rate_mbps = spec.link.rate_mbps
    above = impossible(result.flows, topology, rate_mbps)
    cautions = (*result.cautions, *starved(result.flows, topology, rate_mbps))
    if any(flow.size_bytes for flow in result.flows):  # it is about completion times
        of_goodput = tuple(dataclasses.replace(each, doubts=(GOODPUT, SLOWEST, JAIN)) for each in above)
        return dataclasses.replace(result, cautions=(*cautions, *of_goodput))
    return dataclasses.replace(result, cautions=cautions).doubted(above)


VERDICTS: Mapping[str, Callable[[RunResult, RunSpec], RunResult]] = {
    FLOWS: verdict_of_flows,
    IMS: calls.verdict,
}
"""By kind of workload: what a result must have, and what is doubtful."""


def _lack_of_data(flows: Sequence[FlowRow], spec: RunSpec) -> str:
    """Return why the point has no number; empty if it has."""
    if not flows:
        return "no flow has data"
    lacking = [flow.flow for flow in flows if not math.isfinite(flow.goodput_mbps)]
    if lacking:
        return f"flow {lacking[0]} has no goodput"
    if any(flow.goodput_mbps for flow in flows):
        return ""
    ended = sum(flow.size_bytes > 0 and flow.start_s + flow.completed_s <= 0 for flow in flows)
    if ended == len(flows):
        return f"all {ended} flows had ended before the window: leave out --warmup, or use a shorter one"
    return f"no flow delivered a byte in the {spec.seconds:g} s of the window: measure longer (--seconds)"


def one_line(text: str) -> str:
    """Return `text` on one line, with single spaces."""
    return " ".join(text.split())
