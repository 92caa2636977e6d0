"""The Engine protocol: the interface between experiments and the engines that run their points."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from model.result import Instant, RunResult
from model.spec import RunSpec


class Observer(Protocol):
    """Receives the progress of a run. Calls are cheap and come from the engine's thread."""

    def phase(self, name: str, seconds: float) -> None:
        """Report a new phase (`network`, `connect`, `warm-up`, `measure`, `collect`), expected seconds."""

    def note(self, text: str) -> None:
        """Report one line for the user."""


@runtime_checkable
class Follower(Protocol):
    """An observer that also follows what happens inside a run."""

    def instant(self, seen: Instant) -> None:
        """Receive the counters of an instant, about once a second of the run's clock."""


def follower(observer: Observer) -> Callable[[Instant], None] | None:
    """Return the function that takes the instants of a run; None without a follower: nothing is read then."""
    return observer.instant if isinstance(observer, Follower) else None


class Silent:
    """An observer that ignores everything."""

    def phase(self, name: str, seconds: float) -> None:
        del name, seconds

    def note(self, text: str) -> None:
        del text


class OnePointPerCpu:
    """An engine whose points are one thread each and share nothing."""

    @property
    def parallel(self) -> int:
        """One point per CPU."""
        return len(os.sched_getaffinity(0))

    def cpus(self, spec: RunSpec) -> int:
        """One CPU for each point."""
        del spec
        return 1

    def take_machine(self) -> None:
        """Do nothing: others may use it, too."""


class Engine(Protocol):
    """Runs one RunSpec at a time."""

    @property
    def name(self) -> str: ...

    @property
    def parallel(self) -> int:
        """Number of points that may run at once, one per process; 1 if they would disturb each other."""

    def cpus(self, spec: RunSpec) -> int:
        """Return how many CPUs the point takes, where several points run at once."""

    def memory_mb(self, spec: RunSpec) -> float:
        """Return the peak memory that running the point takes, in MB."""

    def check(self, spec: RunSpec) -> None:
        """Reject, before anything is started, what this engine or machine cannot run.

        Raises UsageError (invalid spec) or HostUnfitError (unfit machine).
        """

    def coupled_cc(self) -> tuple[str, str]:
        """Return MPTCP's default congestion control. If it is not the coupled one, the second text says
        why, and what to do about it; otherwise it is empty."""

    def expected_s(self, spec: RunSpec) -> float:
        """Return the expected real time of a point in seconds, for plans and ETAs."""

    def take_machine(self) -> None:
        """Take the machine until this process ends, if points need it to themselves.

        Raises BusyError that names the process that has it.
        """

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """Run the point; raw tool output goes below the existing folder `raw`.

        Raises RefabricError if there is no result. KeyboardInterrupt is re-raised after everything that the
        run created is gone.
        """
