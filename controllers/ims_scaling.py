"""Scaling of an IMS's functions, live or simulated: when to add an instance, and when to drain one. Pure.

Each second a policy judges the signals of one function; a scaler turns its judgements into steps, one at a
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def _by_others(function: FunctionSignals, each: float) -> float:
    """Return the load of each active instance if there were one fewer; infinite for the last one."""
    active = len(function.active)
    return each * active / (active - 1) if active > 1 else math.inf


Judgement = Callable[["FunctionSignals"], bool]


@dataclass(frozen=True)
class ScalingPolicy:
    """Judges one function by its signals of the last second: whether it is overloaded, and whether it is
    idle, that is, whether the other instances could carry what one of them carries now."""

    overloaded: Judgement
    idle: Judgement


SPARE = 0.7
"""How busy the others may be after they take over."""
FULL, EMPTY = 0.2, 0.02
"""Shares of a receive buffer for the policy `queue`. A queue is nearly empty until a function is nearly
overloaded, so an empty queue alone does not show that one instance fewer would suffice."""
CPU_HIGH, CPU_LOW = 0.8, 0.4
"""Shares of a CPU for the policy `cpu`. It does not detect an S-CSCF whose workers all wait for user data,
because these use no CPU."""
SLOW_MS, WAITING = 150.0, 0.05
"""Time to set up a call, and share of a receive buffer, for the policy `latency`. Setup time is that of the
whole path, so the buffers determine which function to scale."""


def _is_slow(function: FunctionSignals) -> bool:
    slow = function.setup_ms is None or function.setup_ms > SLOW_MS
    return slow and function.queue > WAITING


def _is_fast(function: FunctionSignals) -> bool:
    fast = function.setup_ms is not None and function.setup_ms < SLOW_MS / 2
    return fast and function.queue < WAITING and _by_others(function, function.busy) < SPARE


POLICIES: dict[str, ScalingPolicy] = {
    "static": ScalingPolicy(lambda _: False, lambda _: False),
    "queue": ScalingPolicy(
        lambda function: function.queue > FULL or function.drops > 0,
        lambda function: (
            function.queue < EMPTY and not function.drops and _by_others(function, function.busy) < SPARE
        ),
    ),
    "cpu": ScalingPolicy(
        lambda function: function.cpu > CPU_HIGH,
        lambda function: _by_others(function, function.cpu) < CPU_LOW,
    ),
    "latency": ScalingPolicy(_is_slow, _is_fast),
}


NONE, ADD, DRAIN = "none", "add", "drain"
"""Steps of a scaler."""
SETTLE_S = 3
"""Seconds after a step without another, so that its effect shows first."""
IDLE_S = 20
"""Seconds in a row in which an instance must be idle before one is drained."""


@dataclass
class Scaler:
    """Scales one function between 1 and `most` active instances.

    It adds an instance after `react_s` seconds of overload in a row, and drains one after IDLE_S idle
    seconds in a row. Draining instances keep their dialogs until these end, and the caller ends them then.
    """

    policy: ScalingPolicy
    most: int
    react_s: int = 1
    _overloaded_s: int = 0
    _idle_s: int = 0
    _settled_s: int = SETTLE_S

    def tick(self, function: FunctionSignals) -> str:
        """Return the step to take now; called once a second."""
        active = len(function.active)
        self._settled_s += 1
        self._overloaded_s = self._overloaded_s + 1 if self.policy.overloaded(function) else 0
        self._idle_s = self._idle_s + 1 if self.policy.idle(function) else 0
        if self._settled_s <= SETTLE_S:
            return NONE
        if self._overloaded_s >= self.react_s and active < self.most:
            return self._stepped(ADD)
        if self._idle_s >= IDLE_S and active > 1:
            return self._stepped(DRAIN)
        return NONE

    def _stepped(self, step: str) -> str:
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
