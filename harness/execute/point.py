"""One point of a sweep: run, audited, stored, in whatever process."""

from __future__ import annotations

import dataclasses
import errno
import math
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import topos
from common import files
from common.errors import HostUnfitError, RefabricError, StoreError
from engines.engine import Engine, Observer
from harness.execute import attempts
from harness.execute.attempts import Attempt
from harness.plan.baseline import off_by_arithmetic
from harness.results.store import PointWriter, Store, StoredPoint
from model.reasons import BASELINE, Reason, of_text
from model.result import RunResult, Status
from model.spec import RunSpec

NO_REASON = (of_text("the engine gave no reason"),)


@dataclass(frozen=True)
class Order:
    """A point to run; `rate_how` is how its link rate was come by. A finished result from before is worth
    more than a failure: `keeps_earlier` says there is one. `attempts` are those before a retry, which
    replaces the stored result if it is the one that counts, and not otherwise."""

    spec: RunSpec
    rate_how: str = ""
    keeps_earlier: bool = False
    attempts: tuple[Attempt, ...] = ()

    def keeps_stored(self, made: Attempt) -> bool:
        """Whether the result from before stays when this run ends like this."""
        if not self.attempts:
            return made.status is Status.FAILED and self.keeps_earlier
        return attempts.counting((*self.attempts, made)) <= len(self.attempts)


@dataclass(frozen=True)
class Done:
    """What came of an order: the attempt, and the point as it was stored, or None where an earlier result
    stays."""

    point: StoredPoint | None
    attempt: Attempt

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self.attempt.reasons

    @property
    def elapsed_s(self) -> float:
        return self.attempt.elapsed_s


def carry_out(order: Order, engine: Engine, where: Store, observer: Observer) -> Done:
    """Run the point and store it. Raises what ends a sweep: HostUnfitError, StoreError, KeyboardInterrupt."""
    began, started_at = time.monotonic(), attempts.now()
    with where.writing(order.spec) as writer:
        result = attempt(engine, order.spec, observer, writer.raw)
        return _stored(order, result, writer, time.monotonic() - began, started_at)


def _stored(order: Order, result: RunResult, writer: PointWriter, elapsed_s: float, started_at: str) -> Done:
    made = Attempt.of(result, elapsed_s, started_at)
    if made.status is Status.OK and (off := off_by_arithmetic(order.spec, made.goodput_mbps)):
        made = dataclasses.replace(made, reasons=(Reason(BASELINE, off),))
    if order.keeps_stored(made):
        return Done(None, made)
    result = dataclasses.replace(result, provenance={**result.provenance, "rate_choice": order.rate_how})
    stored = writer.commit(result, hosts_of(order.spec), elapsed_s, (*order.attempts, made))
    return Done(stored, made)


def fail(order: Order, reason: str, where: Store, elapsed_s: float) -> Done:
    """Store the point as failed, whose process is no more. Raises StoreError."""
    with where.writing(order.spec) as writer:
        return _stored(order, _failed(reason), writer, elapsed_s, attempts.ago(elapsed_s))


def _failed(reason: str) -> RunResult:
    return RunResult(Status.FAILED, (of_text(reason),))


def hosts_of(spec: RunSpec) -> int:
    """How many hosts the point's topology has. Raises UsageError on an impossible topology."""
    return len(topos.build(spec.topology.kind, spec.topology.params).hosts)


def attempt(engine: Engine, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run one point; whatever keeps it from having a result is the reason of a failed one.

    Raises HostUnfitError, StoreError, and KeyboardInterrupt: what ends the sweep.
    """
    try:
        return audited(engine.run(spec, observer, raw))
    except (HostUnfitError, StoreError):
        raise
    except RefabricError as error:
        return _failed(one_line(str(error)))
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise files.store_error(f"writing below {raw}", error) from error
        return _bug(error, raw)
    except Exception as error:
        # A bug costs its own point, not the night's sweep; the traceback is kept with the point.
        return _bug(error, raw)


def _bug(error: Exception, raw: Path) -> RunResult:
    with files.storing(f"writing {raw / 'traceback.txt'}"):
        (raw / "traceback.txt").write_text("".join(traceback.format_exception(error)))
    reason = f"a bug: {type(error).__name__}: {error} (raw/traceback.txt has where)"
    return _failed(one_line(reason))


def audited(result: RunResult) -> RunResult:
    """`result`, failed when it promises numbers it does not have: never a missing bar."""
    if result.status is Status.FAILED:
        return result if result.reasons else dataclasses.replace(result, reasons=NO_REASON)
    lacking = [flow.flow for flow in result.flows if not math.isfinite(flow.goodput_mbps)]
    if not result.flows or lacking:
        what = f"flow {lacking[0]} has no goodput" if lacking else "no flow has data"
        return dataclasses.replace(result, status=Status.FAILED, reasons=(*result.reasons, of_text(what)))
    if result.status is Status.SUSPECT and not result.reasons:
        return dataclasses.replace(result, reasons=NO_REASON)
    return result


def one_line(text: str) -> str:
    """`text` on one line."""
    return " ".join(text.split())
