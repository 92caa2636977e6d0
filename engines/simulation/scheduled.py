"""A central scheduler in a simulation: at exact instants of virtual time, in no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from controllers.hashing import FiveTuple
from engines.core_setup.stack import PS_PER_MS, PS_PER_S
from engines.scheduling import SimulatedNetwork
from fabric._core import Simulation
from model.flows import PlannedFlow
from model.schedulers import Driver, application_of, scheduled
from model.spec import RunSpec, SchedulerSpec
from topos.topology import Topology

IDEAL_LOOK_PS = PS_PER_MS
"""An ideal scheduler learns of flows that have begun or ended this long after at most."""


class Clock(Protocol):
    def run_until(self, limit_ps: int) -> None: ...


class Scheduling:
    """What a simulated point has of its scheduler, where it has one."""

    def __init__(
        self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
    ) -> None:
        self._spec = spec
        self._network: SimulatedNetwork | None = None
        self._driver: Driver | None = None
        if scheduled(spec):
            self._network = SimulatedNetwork(spec, topology, flows, simulation)
            self._driver = Driver(application_of(spec, topology), self._network)

    def clock(self, clock: Clock) -> Clock:
        """The same, with the scheduler's ticks."""
        if self._driver is None or self._network is None:
            return clock
        return Scheduled(clock, self._spec.scheduler, self._driver, self._network)

    @property
    def counts(self) -> Mapping[str, float]:
        """Metrics; the same on every machine."""
        return self._driver.account.counts if self._driver else {}

    @property
    def times(self) -> Mapping[str, float]:
        """What ticks took on this one."""
        return self._driver.account.times if self._driver else {}


class Scheduled:
    """Runs a simulation, and lets the scheduler look at it: at every multiple of its interval, or, an ideal
    one, at every multiple of IDEAL_LOOK_PS (0 too) at which other flows run than the time before."""

    def __init__(
        self, clock: Clock, chosen: SchedulerSpec, driver: Driver, network: SimulatedNetwork
    ) -> None:
        self._clock = clock
        self._driver = driver
        self._network = network
        self._ideal = chosen.ideal
        self._step_ps = IDEAL_LOOK_PS if chosen.ideal else round(chosen.interval_ms * PS_PER_MS)
        self._next_ps = 0 if chosen.ideal else self._step_ps
        self._ran: frozenset[FiveTuple] = frozenset()

    def run_until(self, limit_ps: int) -> None:
        """Everything up to and including this instant."""
        while self._next_ps <= limit_ps:
            self._clock.run_until(self._next_ps)
            if self._is_due():
                self._driver.tick(self._next_ps / PS_PER_S)
            self._next_ps += self._step_ps
        self._clock.run_until(limit_ps)

    def _is_due(self) -> bool:
        if not self._ideal:
            return True
        running, self._ran = self._ran, self._network.running()
        return running != self._ran
