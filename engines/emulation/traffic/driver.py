"""The seam between a point and whatever makes its traffic: iperf3 processes, or one process for all hosts."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self


@dataclass(frozen=True)
class Delivered:
    """A flow at its end: payload bytes its receiver read in all, and what went wrong, if anything did."""

    flow: int
    received_bytes: int
    error: str


class TrafficDriver(Protocol):
    """All flows of a point, in the order of its plan. A context manager: leaving ends everything."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def open(self) -> None:
        """Every flow's server listens. Raises RunError, DeadlineError, HostUnfitError."""

    def connect(self, deadline_s: float) -> None:
        """Every flow's connection is up. Raises DeadlineError naming the first that is not in time,
        RunError naming one that cannot be."""

    def up_s(self) -> list[float]:
        """Seconds from the call of `connect` until each flow's connection was up."""

    def release(self) -> None:
        """Traffic starts, if it has not by itself."""

    def received(self) -> list[int | None]:
        """Payload bytes each flow's receiver has got so far; None where its socket is gone."""

    def started_s(self) -> list[float]:
        """Seconds from the release until each flow began to send; nan for those that did not yet."""

    def completed_s(self) -> list[float]:
        """Seconds each sized flow took, from its own start; nan for unlimited or unfinished ones."""

    def check(self) -> None:
        """Raise RunError when a flow has died: to be called now and then while they run."""

    def stop(self) -> list[Delivered]:
        """End the flows and tell what became of them."""
