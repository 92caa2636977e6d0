"""Attempts at a point. A point that only the machine makes suspect is run again; all attempts are kept.

The first attempt that is ok counts, not the best one. If none is ok, the first attempt counts.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import records
from model.reasons import Reason, texts
from model.result import RunResult, Status, under_test


@dataclass(frozen=True)
class Attempt:
    """The outcome of one run of a point.

    `goodput_mbps` is the mean over its flows, None without flows. `started_at` is a UTC time (ISO 8601),
    empty if it was not recorded. An attempt that is ok has a reason only if it is a baseline that differs
    from its computed value.
    """

    status: Status
    reasons: tuple[Reason, ...]
    goodput_mbps: float | None
    elapsed_s: float
    started_at: str = ""

    @classmethod
    def of(cls, result: RunResult, elapsed_s: float, started_at: str) -> Attempt:
        """Return the attempt that led to `result`."""
        goodputs = [flow.goodput_mbps for flow in under_test(result.flows)]
        mean = statistics.fmean(goodputs) if goodputs else math.nan
        known = result.status is not Status.FAILED and math.isfinite(mean)
        return cls(result.status, result.reasons, mean if known else None, round(elapsed_s, 3), started_at)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "status": self.status.value,
            "reasons": [reason.to_json() for reason in self.reasons],
            "goodput_mbps": self.goodput_mbps,
            "elapsed_s": self.elapsed_s,
            "started_at": self.started_at,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attempt:
        """Return the attempt that `to_json` wrote. Raises ValueError, KeyError for other data."""
        data = records.mapping(data, "an attempt")
        goodput, reasons = data["goodput_mbps"], data["reasons"]
        if not isinstance(reasons, list):
            raise ValueError("the reasons of an attempt are not a list")
        return cls(
            Status(records.text(data["status"], "status")),
            tuple(map(Reason.from_json, reasons)),
            None if goodput is None else records.number(goodput, "goodput_mbps"),
            records.number(data["elapsed_s"], "elapsed_s"),
            records.text(data["started_at"], "started_at"),
        )


def counting(attempts: Sequence[Attempt]) -> int:
    """Return the number, from 1, of the attempt that counts: the first that is ok and has no reason, else the
    first that is ok, else the first."""
    good = [(bool(each.reasons), n) for n, each in enumerate(attempts, 1) if each.status is Status.OK]
    return min(good, default=(True, 1))[1]


def words(attempts: Sequence[Attempt]) -> str:
    """Return `attempt 2 of 2`; empty if the point was run once."""
    return f"attempt {counting(attempts)} of {len(attempts)}" if len(attempts) > 1 else ""


def brief(attempts: Sequence[Attempt]) -> str:
    """Return status and goodput of each attempt: `1: suspect, 8.09 Mb/s; 2: ok, 8.1 Mb/s`."""
    return "; ".join(f"{number}: {_status(each)}" for number, each in enumerate(attempts, 1))


def listed(attempts: Sequence[Attempt]) -> str:
    """Return every attempt with its time and reasons and mark the one that counts; empty if the point was run
    once."""
    if len(attempts) < 2:
        return ""
    counts = counting(attempts)
    return " | ".join(_described(number, each, number == counts) for number, each in enumerate(attempts, 1))


def _described(number: int, attempt: Attempt, counts: bool) -> str:
    when = f" at {attempt.started_at}" if attempt.started_at else ""
    why = f" ({texts(attempt.reasons)})" if attempt.reasons else ""
    return f"attempt {number}{when}{' (counts)' if counts else ''}: {_status(attempt)}{why}"


def _status(attempt: Attempt) -> str:
    goodput = "" if attempt.goodput_mbps is None else f", {attempt.goodput_mbps:.3g} Mb/s"
    return f"{attempt.status}{goodput}"


def now() -> str:
    """Return the current UTC time in ISO 8601, for `Attempt.started_at`."""
    return ago(0.0)


def ago(seconds: float) -> str:
    """Return the UTC time `seconds` before now, in ISO 8601."""
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")
