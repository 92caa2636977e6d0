"""The seam between experiments and whatever carries them out."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from model.result import RunResult
from model.spec import RunSpec


class Observer(Protocol):
    """Told how a run is getting on. Calls are cheap and come from the engine's own thread of work."""

    def phase(self, name: str, seconds: float) -> None:
        """A phase (`network`, `connect`, `warm-up`, `measure`, `collect`) begins; expected seconds."""

    def note(self, text: str) -> None:
        """One line worth telling the user."""


class Silent:
    """An observer that tells nobody."""

    def phase(self, name: str, seconds: float) -> None:
        del name, seconds

    def note(self, text: str) -> None:
        del text


class Engine(Protocol):
    """Carries out one RunSpec at a time."""

    name: str

    @property
    def parallel(self) -> int:
        """Points it may run at once, each in a process of its own; 1 where they would disturb each other."""

    def memory_mb(self, spec: RunSpec) -> float:
        """The most a process that runs the point will hold; 0 where points do not run at once anyway."""

    def check(self, spec: RunSpec) -> None:
        """Refuse, before anything is started, what this engine or machine cannot do.

        Raises UsageError (the spec is wrong) or HostUnfitError (the machine is).
        """

    def coupled_cc(self) -> tuple[str, str]:
        """What MPTCP runs where nobody asks for a congestion control, and, where that is not the coupled
        one, why not and what to do about it."""

    def expected_s(self, spec: RunSpec) -> float:
        """Seconds of real time a point is expected to take, for plans and ETAs."""

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """Run the point; raw tool output goes below the existing folder `raw`.

        Raises RefabricError for what cannot be a result; KeyboardInterrupt passes through after
        everything the run created is gone.
        """
