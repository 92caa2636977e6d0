"""The controller of one function: turns a policy's judgement into steps, one at a time."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from controllers.ims.policies import Policy
from controllers.ims.signals import FunctionSignals

SETTLE_S = 3
"""Seconds after a step without another, so that its effect shows first."""
IDLE_S = 20
"""Seconds in a row in which an instance must be idle before one is drained."""


class Step(enum.Enum):
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

    def tick(self, function: FunctionSignals) -> Step:
        """Return the step to take now; called once a second."""
        active = len(function.active)
        self._settled_s += 1
        self._overloaded_s = self._overloaded_s + 1 if self.policy.overloaded(function) else 0
        self._idle_s = self._idle_s + 1 if self.policy.idle(function) else 0
        if self._settled_s <= SETTLE_S:
            return Step.NONE
        if self._overloaded_s >= self.react_s and active < self.most:
            return self._stepped(Step.ADD)
        if self._idle_s >= IDLE_S and active > 1:
            return self._stepped(Step.DRAIN)
        return Step.NONE

    def _stepped(self, step: Step) -> Step:
        self._overloaded_s = self._idle_s = self._settled_s = 0
        return step
