"""Scaling of an IMS's functions, live or simulated: when to add an instance, and when to drain one. Pure.

Each second a policy judges the signals of one function; a scaler turns its judgements into steps, one at a
time.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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


SETTLE_S = 3
"""Seconds after a step without another, so that its effect shows first."""
IDLE_S = 20
"""Seconds in a row in which an instance must be idle before one is drained."""


class ScalingStep(enum.Enum):
    NONE = "none"
    ADD = "add"
    DRAIN = "drain"


@dataclass
class Scaler:
    """Scales one function between 1 and `most` active instances.

    It adds an instance after `react_s` seconds of overload in a row, and drains one after IDLE_S idle
    seconds in a row. Draining instances keep their dialogs until these end, and the caller ends them then.
    """

    policy: Policy
    most: int
    react_s: int = 1
    _overloaded_s: int = 0
    _idle_s: int = 0
    _settled_s: int = SETTLE_S

    def tick(self, function: FunctionSignals) -> ScalingStep:
        """Return the step to take now; called once a second."""
        active = len(function.active)
        self._settled_s += 1
        self._overloaded_s = self._overloaded_s + 1 if self.policy.overloaded(function) else 0
        self._idle_s = self._idle_s + 1 if self.policy.idle(function) else 0
        if self._settled_s <= SETTLE_S:
            return ScalingStep.NONE
        if self._overloaded_s >= self.react_s and active < self.most:
            return self._stepped(ScalingStep.ADD)
        if self._idle_s >= IDLE_S and active > 1:
            return self._stepped(ScalingStep.DRAIN)
        return ScalingStep.NONE

    def _stepped(self, step: ScalingStep) -> ScalingStep:
        self._overloaded_s = self._idle_s = self._settled_s = 0
        return step


@dataclass(frozen=True)
class InstanceSignals:
    """One instance over the last interval.

    `queue` is the share of its receive buffer that is full now, `drops` the messages that the buffer
    refused, `cpu` the share of one CPU that it used. `busy` is the share of its workers' time that its
    messages and look-ups took, by their counts and measured times. `active` ones get new dialogs, others
    drain.
    """

    queue: float
    drops: int
    cpu: float
    busy: float
    active: bool = True


@dataclass(frozen=True)
class FunctionSignals:
    """One function (P-CSCF or S-CSCF): its instances and, of all calls, the median setup time in ms."""

    instances: tuple[InstanceSignals, ...]
    setup_ms: float | None = None

    @property
    def active(self) -> Sequence[InstanceSignals]:
        return [instance for instance in self.instances if instance.active]

    @property
    def queue(self) -> float:
        """The fullest receive buffer of an active instance."""
        return max((instance.queue for instance in self.active), default=0.0)

    @property
    def drops(self) -> int:
        return sum(instance.drops for instance in self.active)

    @property
    def cpu(self) -> float:
        """The mean over active instances."""
        return _mean([instance.cpu for instance in self.active])

    @property
    def busy(self) -> float:
        """The mean over active instances."""
        return _mean([instance.busy for instance in self.active])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
