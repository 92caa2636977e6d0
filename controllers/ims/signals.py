"""What a controller of an IMS observes of each function, once per second, live or simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
