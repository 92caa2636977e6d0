"""The TrafficDriver protocol: the interface between a point and its traffic programs."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self


@dataclass(frozen=True)
class Delivered:
    """A flow at its end: payload bytes that its receiver read in total, and its error or an empty text."""

    flow: int
    received_bytes: int
    error: str


class TrafficDriver(Protocol):
    """All flows of a point in order. Leaving this context manager ends everything."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def open(self) -> None:
        """Start every flow's server. Raises RunError, DeadlineError, HostUnfitError."""

    def connect(self, deadline_s: float) -> None:
        """Establish every flow's connection. Raises DeadlineError that names the first late flow, and
        RunError that names a flow that cannot connect."""

    def up_s(self) -> list[float]:
        """Return seconds from the call of `connect` until each flow's connection was established."""

    def release(self) -> None:
        """Start the traffic, if it has not started on its own."""

    def received(self) -> list[int | None]:
        """Return the payload bytes that each flow's receiver has so far; None if its socket is gone."""

    def started_s(self) -> list[float]:
        """Return seconds from the release until each flow began to send; nan if it has not."""

    def completed_s(self) -> list[float]:
        """Return each sized flow's completion time from its start, in s; nan if unlimited or unfinished."""

    def retransmitted(self) -> list[int | None]:
        """Return the segments that each completed flow's sender retransmitted in all; None if the flow is
        not completed, or the kernel does not say."""

    def check(self) -> None:
        """Raise RunError if a flow has died; call it periodically while flows run."""

    def stop(self) -> list[Delivered]:
        """End the flows and return their outcomes."""
