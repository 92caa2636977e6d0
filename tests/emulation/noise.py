"""What a noisy machine may do to a run of real hosts, and what a test makes of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from engines.result import RunResult, Status

_PREFIXES = ("CPU:", "congestion control: the kernel left out")


def only_noise(result: RunResult) -> bool:
    """Whether nothing but the machine casts doubt on it: other programs' use of the CPUs, and a kernel that
    runs no BPF program while a certain process of theirs does (docs/congestion.md)."""
    return all(reason.startswith(_PREFIXES) for reason in result.reasons)


def repeated(run: Callable[[], RunResult]) -> RunResult:
    """A run, once more where the machine had no time for it."""
    result = run()
    if result.status is not Status.OK and only_noise(result):
        result = run()
    assert only_noise(result), result.reasons
    return result


def noisy(*results: RunResult) -> bool:
    """Whether how fast and how even packets went says more of the machine than of hosts; it is warned."""
    reasons = [reason for result in results for reason in result.reasons]
    if reasons:
        warnings.warn(f"the machine was too busy for this: {'; '.join(reasons)}", stacklevel=2)
    return bool(reasons)
