"""What a noisy machine may do to a run of real hosts, and what a test makes of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from engines.engine import Engine, Silent
from model.reasons import DRIFT, REPAIRS, STALLED, UNSTEADY, Reason, texts
from model.result import RunResult
from model.spec import RunSpec

OF_SHORT_WINDOWS = {UNSTEADY, DRIFT}
"""Tests measure for seconds: flows have not settled by then, and no test rests on that."""


def doubts(result: RunResult) -> list[Reason]:
    """Why not to believe it, but for the shortness of its window."""
    return [reason for reason in result.reasons if reason.kind not in OF_SHORT_WINDOWS]


def only_noise(result: RunResult) -> bool:
    """Whether nothing but the machine casts doubt on it: other programs' use of the CPUs, and a kernel that
    runs no BPF program while a certain process of another program does (docs/congestion.md)."""
    return all(reason.about.machine or reason.kind == REPAIRS for reason in doubts(result))


def waits(result: RunResult) -> bool:
    """Whether a flow waits in the whole of a short window for data on a slow subflow.

    Linux's MPTCP sends such data again only by an idle subflow. It is rare: if it is not, the second run has
    it too.
    """
    return any(reason.kind == STALLED for reason in doubts(result))


def repeated(run: Callable[[], RunResult]) -> RunResult:
    """A run, once more where the machine had no time for it, or where a flow waited."""
    result = run()
    if doubts(result) and (only_noise(result) or waits(result)):
        result = run()
    assert only_noise(result), result.reasons
    return result


def run_once(engine: Engine, wanted: RunSpec, raw: Path) -> RunResult:
    """A run that nothing but the machine may cast doubt on."""
    engine.check(wanted)
    result = engine.run(wanted, Silent(), raw)
    assert only_noise(result), result.reasons
    return result


def noisy(*results: RunResult) -> bool:
    """Whether how fast and how even packets went says more of the machine than of hosts; it is warned."""
    reasons = [reason for result in results for reason in doubts(result)]
    if reasons:
        warnings.warn(f"the machine was too busy for this: {texts(reasons)}", stacklevel=2)
    return bool(reasons)
