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
from engines.engine import Engine, Observer
from engines.result import RunResult, Status
from engines.spec import RunSpec
from experiments import files
from experiments.store import Store, StoredPoint
from fabric.errors import HostUnfitError, RefabricError, StoreError


@dataclass(frozen=True)
class Order:
    """A point to run; `rate_how` is how its link rate was come by. A finished result from before is worth
    more than a failure: `keeps_earlier` says there is one."""

    spec: RunSpec
    rate_how: str = ""
    keeps_earlier: bool = False


@dataclass(frozen=True)
class Done:
    """What came of an order: the point as it was stored, or, where an earlier result was kept, why this one
    failed."""

    point: StoredPoint | None
    reasons: tuple[str, ...]
    elapsed_s: float


def carry_out(order: Order, engine: Engine, where: Store, observer: Observer) -> Done:
    """Run the point and store it. Raises what ends a sweep: HostUnfitError, StoreError, KeyboardInterrupt."""
    began = time.monotonic()
    with where.writing(order.spec) as writer:
        result = attempt(engine, order.spec, observer, writer.raw)
        elapsed_s = time.monotonic() - began
        if result.status is Status.FAILED and order.keeps_earlier:
            return Done(None, result.reasons, elapsed_s)
        result = dataclasses.replace(result, provenance={**result.provenance, "rate_choice": order.rate_how})
        return Done(writer.commit(result, hosts_of(order.spec), elapsed_s), (), elapsed_s)


def fail(order: Order, reason: str, where: Store, elapsed_s: float) -> Done:
    """Store the point as failed, whose process is no more. Raises StoreError."""
    if order.keeps_earlier:
        return Done(None, (reason,), elapsed_s)
    result = RunResult(Status.FAILED, (reason,), provenance={"rate_choice": order.rate_how})
    with where.writing(order.spec) as writer:
        return Done(writer.commit(result, hosts_of(order.spec), elapsed_s), (), elapsed_s)


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
        return RunResult(Status.FAILED, (one_line(str(error)),))
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
    return RunResult(Status.FAILED, (one_line(reason),))


def audited(result: RunResult) -> RunResult:
    """`result`, failed when it promises numbers it does not have: never a missing bar."""
    if result.status is Status.FAILED:
        return (
            result if result.reasons else dataclasses.replace(result, reasons=("the engine gave no reason",))
        )
    lacking = [flow.flow for flow in result.flows if not math.isfinite(flow.goodput_mbps)]
    if not result.flows or lacking:
        what = f"flow {lacking[0]} has no goodput" if lacking else "no flow has data"
        return dataclasses.replace(result, status=Status.FAILED, reasons=(*result.reasons, what))
    if result.status is Status.SUSPECT and not result.reasons:
        return dataclasses.replace(result, reasons=("the engine gave no reason",))
    return result


def one_line(text: str) -> str:
    """`text` on one line."""
    return " ".join(text.split())
