"""A central controller in a simulation: it works at exact virtual times and takes no time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from controllers.hashing import FiveTuple
from engines.core_setup.stack import PS_PER_MS, PS_PER_S
from engines.scheduling import SimulatedNetwork
from engines.simulation.connections import SimulatedConnections
from fabric._core import Simulation
from model.flows import PlannedFlow
from model.responsive import loop_metrics, loop_of, opens_subflows
from model.schedulers import Driver, application_of, scheduled
from model.spec import RunSpec, SchedulerSpec
from topos.topology import Topology

PS_PER_NS = 1000
IDEAL_LOOK_PS = PS_PER_MS
"""Maximum delay until an ideal scheduler notices that flows have begun or ended."""


class Clock(Protocol):
    def run_until(self, limit_ps: int) -> None: ...


class Control(Protocol):
    """The controller of a simulated point. `counts` are metrics that are identical on every machine, `times`
    CPU times on this one."""

    def clock(self, clock: Clock) -> Clock: ...
    @property
    def counts(self) -> Mapping[str, float]: ...
    @property
    def times(self) -> Mapping[str, float]: ...


def control_of(
    spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
) -> Control:
    """Return the controller that the spec asks for."""
    if opens_subflows(spec):
        return Responsive(spec, topology, flows, simulation)
    return Scheduling(spec, topology, flows, simulation)


class Scheduling:
    """The scheduler of a simulated point, if it has one."""

    def __init__(
        self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
    ) -> None:
        self._spec = spec
        self._network: SimulatedNetwork | None = None
        self._driver: Driver | None = None
        if scheduled(spec):
            self._network = SimulatedNetwork(spec, topology, flows, simulation)
            application = application_of(spec, topology)
            self._driver = Driver(application, self._network, len(topology.switches))

    def clock(self, clock: Clock) -> Clock:
        """Return the clock with the scheduler's ticks."""
        if self._driver is None or self._network is None:
            return clock
        return Scheduled(clock, self._spec.scheduler, self._driver, self._network)

    @property
    def counts(self) -> Mapping[str, float]:
        """Metrics that are identical on every machine."""
        return self._driver.account.counts if self._driver else {}

    @property
    def times(self) -> Mapping[str, float]:
        """CPU time of ticks on this machine."""
        return self._driver.account.times if self._driver else {}


class Responsive:
    """Monitors and controller of responsive multipath TCP; what they do follows the simulation's clock."""

    def __init__(
        self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
    ) -> None:
        self._seconds = spec.warmup_s + spec.seconds
        self._loop = loop_of(spec, topology)
        self._network = SimulatedConnections(spec, topology, flows, simulation)
        self._cpu_s = 0.0

    def clock(self, clock: Clock) -> Clock:
        self._clock = clock
        return self

    def run_until(self, limit_ps: int) -> None:
        """Run up to and including this time."""
        while (due_ps := self._loop.next_ns * PS_PER_NS) <= limit_ps:
            self._clock.run_until(due_ps)
            began_s = time.thread_time()
            self._loop.run(self._network, self._loop.next_ns)
            self._cpu_s += time.thread_time() - began_s
        self._clock.run_until(limit_ps)

    @property
    def counts(self) -> Mapping[str, float]:
        return loop_metrics(self._loop, self._seconds)

    @property
    def times(self) -> Mapping[str, float]:
        return {"controller_cpu_s": self._cpu_s}


class Scheduled:
    """Runs a simulation and ticks its scheduler at every multiple of its interval.

    An ideal scheduler ticks at multiples of IDEAL_LOOK_PS (including 0) at which the set of running flows
    has changed.
    """

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
        """Run up to and including this time."""
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
