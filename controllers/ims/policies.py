"""Policies: decide whether a function is overloaded, and whether one instance fewer would suffice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from controllers.ims.signals import FunctionSignals


class Policy(Protocol):
    """Judges one function by its signals of the last second."""

    def overloaded(self, function: FunctionSignals) -> bool: ...

    def idle(self, function: FunctionSignals) -> bool:
        """Return whether the other instances could carry what one of them carries now."""


@dataclass(frozen=True)
class Static:
    """Never scales."""

    def overloaded(self, function: FunctionSignals) -> bool:
        del function
        return False

    def idle(self, function: FunctionSignals) -> bool:
        del function
        return False


@dataclass(frozen=True)
class QueueThreshold:
    """Scales up when a receive buffer is fuller than `high` or refuses messages.

    A queue is nearly empty until a function is nearly overloaded, so an empty queue does not show that one
    instance fewer would suffice. The others must also be less than `spare` busy after they take over.
    """

    high: float = 0.2
    low: float = 0.02
    spare: float = 0.7

    def overloaded(self, function: FunctionSignals) -> bool:
        return function.queue > self.high or function.drops > 0

    def idle(self, function: FunctionSignals) -> bool:
        fits = _by_others(function, function.busy) < self.spare
        return function.queue < self.low and not function.drops and fits


@dataclass(frozen=True)
class CpuThreshold:
    """Scales up when active instances use more than `high` of a CPU on average.

    It does not detect an S-CSCF whose workers all wait for user data, because these use no CPU.
    """

    high: float = 0.8
    low: float = 0.4

    def overloaded(self, function: FunctionSignals) -> bool:
        return function.cpu > self.high

    def idle(self, function: FunctionSignals) -> bool:
        return _by_others(function, function.cpu) < self.low


@dataclass(frozen=True)
class LatencyThreshold:
    """Scales up when calls take longer than `high_ms` to set up, the function with the fullest buffer only.

    Setup time is that of the whole path, so the buffers determine which function to scale.
    """

    high_ms: float = 150.0
    waiting: float = 0.05
    spare: float = 0.7

    def overloaded(self, function: FunctionSignals) -> bool:
        slow = function.setup_ms is None or function.setup_ms > self.high_ms
        return slow and function.queue > self.waiting

    def idle(self, function: FunctionSignals) -> bool:
        fast = function.setup_ms is not None and function.setup_ms < self.high_ms / 2
        fits = _by_others(function, function.busy) < self.spare
        return fast and function.queue < self.waiting and fits


def _by_others(function: FunctionSignals, each: float) -> float:
    """Return the load of each active instance if there were one fewer; infinite for the last one."""
    active = len(function.active)
    return each * active / (active - 1) if active > 1 else math.inf


POLICIES: dict[str, Policy] = {
    "static": Static(),
    "queue": QueueThreshold(),
    "cpu": CpuThreshold(),
    "latency": LatencyThreshold(),
}
