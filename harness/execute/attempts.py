"""Attempts at a point: one that only the machine makes suspect is run again, and every attempt is kept.

The first attempt that is ok counts, never the best; where none is ok, the first of all.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.reasons import Reason, texts
from model.result import RunResult, Status, under_test

BASELINE_RETRIES = 2
"""Every percentage rests on the baseline, and it takes seconds: it is tried three times in all."""


@dataclass(frozen=True)
class Retries:
    """How often a point, and how often a baseline, may be run again."""

    points: int = 0
    baselines: int = 0

    @classmethod
    def of_profile(cls, points: int) -> Retries:
        """Baselines have theirs whatever a profile says of points."""
        return cls(points, max(points, BASELINE_RETRIES))

    @classmethod
    def typed(cls, points: int) -> Retries:
        """As asked for: 0 is none at all."""
        return cls.of_profile(points) if points else NO_RETRIES


NO_RETRIES = Retries()


@dataclass(frozen=True)
class Attempt:
    """What one run of a point came to. `goodput_mbps` is the mean over its flows, None without any;
    `started_at` is a UTC time (ISO 8601), empty where it was not recorded. One that is ok has reasons where
    it is a baseline that is not what it is computed to be."""

    status: Status
    reasons: tuple[Reason, ...]
    goodput_mbps: float | None
    elapsed_s: float
    started_at: str = ""

    @classmethod
    def of(cls, result: RunResult, elapsed_s: float, started_at: str) -> Attempt:
        """What is kept of a result."""
        goodputs = [flow.goodput_mbps for flow in under_test(result.flows)]
        mean = statistics.fmean(goodputs) if goodputs else math.nan
        known = result.status is not Status.FAILED and math.isfinite(mean)
        return cls(result.status, result.reasons, mean if known else None, round(elapsed_s, 3), started_at)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; `from_json` is the inverse."""
        return {
            "status": self.status.value,
            "reasons": [reason.to_json() for reason in self.reasons],
            "goodput_mbps": self.goodput_mbps,
            "elapsed_s": self.elapsed_s,
            "started_at": self.started_at,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attempt:
        """Raises ValueError, TypeError or KeyError for what is no attempt."""
        goodput = data["goodput_mbps"]
        return cls(
            Status(data["status"]),
            tuple(map(Reason.from_json, data["reasons"])),
            None if goodput is None else float(goodput),
            float(data["elapsed_s"]),
            str(data["started_at"]),
        )


def counting(attempts: Sequence[Attempt]) -> int:
    """The number, from 1, of the attempt that counts: the first that is ok without a reason, else the first
    that is ok, else the first."""
    good = [(bool(each.reasons), n) for n, each in enumerate(attempts, 1) if each.status is Status.OK]
    return min(good, default=(True, 1))[1]


def words(attempts: Sequence[Attempt]) -> str:
    """`attempt 2 of 2`; empty where the point was run once."""
    return f"attempt {counting(attempts)} of {len(attempts)}" if len(attempts) > 1 else ""


def brief(attempts: Sequence[Attempt]) -> str:
    """What each attempt reached: `1: suspect, 8.09 Mb/s; 2: ok, 8.1 Mb/s`."""
    return "; ".join(f"{number}: {_reached(each)}" for number, each in enumerate(attempts, 1))


def listed(attempts: Sequence[Attempt]) -> str:
    """Every attempt with its time and reasons, the one that counts marked; empty where the point was run
    once."""
    if len(attempts) < 2:
        return ""
    counts = counting(attempts)
    return " | ".join(_told(number, each, number == counts) for number, each in enumerate(attempts, 1))


def _told(number: int, attempt: Attempt, counts: bool) -> str:
    when = f" at {attempt.started_at}" if attempt.started_at else ""
    why = f" ({texts(attempt.reasons)})" if attempt.reasons else ""
    return f"attempt {number}{when}{' (counts)' if counts else ''}: {_reached(attempt)}{why}"


def _reached(attempt: Attempt) -> str:
    goodput = "" if attempt.goodput_mbps is None else f", {attempt.goodput_mbps:.3g} Mb/s"
    return f"{attempt.status}{goodput}"


def now() -> str:
    """This second in UTC, for `Attempt.started_at`."""
    return ago(0.0)


def ago(seconds: float) -> str:
    """The time so many seconds before now."""
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")
