"""Central controllers in a simulation: a flow scheduler, or responsive multipath TCP.

They work at exact virtual times and take no time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.rules import Routes
from engines.core_setup import NEVER_PS, PS_PER_MS, PS_PER_S
from engines.scheduling import SimulatedNetwork
from fabric._core import Simulation
from model.flows import PlannedFlow, subflow_pairs
from model.network_plan import ports_along
from model.schedulers import Driver, application_of, loop_metrics, loop_of, opens_subflows, scheduled
from model.spec import RunSpec, sub_seed
from topos.topology import Topology

PS_PER_NS = 1000
IDEAL_LOOK_PS = PS_PER_MS
"""Maximum delay until an ideal scheduler notices that flows have begun or ended."""


RunUntil = Callable[[int], None]
"""Runs up to and including a time in ps."""


def control_of(
    spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
) -> Scheduling | Responsive:
    """Return the controller that the spec asks for. Its `counts` are metrics that are identical on every
    machine, its `times` CPU times on this one."""
    if opens_subflows(spec):
        return Responsive(spec, topology, flows, simulation)
    return Scheduling(spec, topology, flows, simulation)


class Scheduling:
    """The flow scheduler of a simulated point, if it has one: a tick at every multiple of its interval.

    An ideal scheduler ticks at multiples of IDEAL_LOOK_PS (including 0) at which the set of running flows
    has changed.
    """

    def __init__(
        self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
    ) -> None:
        self._driver: Driver | None = None
        if not scheduled(spec):
            return
        self._network = SimulatedNetwork(spec, topology, flows, simulation)
        self._driver = Driver(application_of(spec, topology), self._network, len(topology.switches))
        self._ideal = spec.scheduler.ideal
        self._step_ps = IDEAL_LOOK_PS if self._ideal else round(spec.scheduler.interval_ms * PS_PER_MS)
        self._next_ps = 0 if self._ideal else self._step_ps
        self._ran: frozenset[FiveTuple] = frozenset()

    def ticking(self, run_until: RunUntil) -> RunUntil:
        """Return what runs the simulation and the scheduler's ticks, from what runs the simulation."""
        self._simulate_until = run_until
        return self.run_until if self._driver else run_until

    def run_until(self, limit_ps: int) -> None:
        """Run up to and including this time."""
        assert self._driver
        while self._next_ps <= limit_ps:
            self._simulate_until(self._next_ps)
            if self._is_due():
                self._driver.tick(self._next_ps / PS_PER_S)
            self._next_ps += self._step_ps
        self._simulate_until(limit_ps)

    def _is_due(self) -> bool:
        if not self._ideal:
            return True
        before, self._ran = self._ran, self._network.running()
        return before != self._ran

    @property
    def counts(self) -> Mapping[str, float]:
        return self._driver.account.counts if self._driver else {}

    @property
    def times(self) -> Mapping[str, float]:
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

    def ticking(self, run_until: RunUntil) -> RunUntil:
        """Return what runs the simulation, the monitors and the controller."""
        self._simulate_until = run_until
        return self.run_until

    def run_until(self, limit_ps: int) -> None:
        """Run up to and including this time."""
        while (due_ps := self._loop.next_ns * PS_PER_NS) <= limit_ps:
            self._simulate_until(due_ps)
            began_s = time.thread_time()
            self._loop.run(self._network, self._loop.next_ns)
            self._cpu_s += time.thread_time() - began_s
        self._simulate_until(limit_ps)

    @property
    def counts(self) -> Mapping[str, float]:
        return loop_metrics(self._loop, self._seconds)

    @property
    def times(self) -> Mapping[str, float]:
        return {"controller_cpu_s": self._cpu_s}


class SimulatedConnections:
    """Connections by the 5-tuple of their first subflow. Acknowledgements keep the paths that they hash to.

    Flows that follow others may have the 5-tuple of one that has ended; at most one of them runs.
    """

    def __init__(
        self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
    ) -> None:
        """`simulation` carries `flows` in this order."""
        self._topology = topology
        self._routes = Routes(topology, spec.routing, sub_seed(spec.seed, "routing"))
        self._simulation = simulation
        self._first = np.array([0, *accumulate(flow.subflows for flow in flows)], np.int64)
        self._flows = [_first_pair(topology, flow) for flow in flows]
        self._number: dict[FiveTuple, int] = {}
        self._ran: npt.NDArray[np.bool_] = np.zeros(len(flows), bool)
        self._running: frozenset[FiveTuple] = frozenset()

    def connections(self) -> Mapping[FiveTuple, int]:
        self.running()
        acked = self._simulation.subflows()["acked_bytes"]
        octets = np.add.reduceat(acked, self._first[:-1])
        return {flow: int(octets[i]) for flow, i in self._number.items()}

    def running(self) -> frozenset[FiveTuple]:
        seen = self._simulation.flows()
        runs = (seen["started_ps"] < NEVER_PS) & (seen["completed_ps"] == NEVER_PS)
        if not np.array_equal(runs, self._ran):
            self._ran = runs
            self._number = {self._flows[i]: i for i in np.flatnonzero(runs).tolist()}
            self._running = frozenset(self._number)
        return self._running

    def open_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        return self.move_subflow(flow, number, path) and self._simulation.open_subflow(
            self._subflow(flow, number)
        )

    def move_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if flow not in self.running():
            return False
        nodes = tuple(self._topology.index(name) for name in path)
        self._routes.check(flow, nodes)
        subflow = self._subflow(flow, number)
        ports = ports_along(self._topology, nodes)
        self._simulation.set_path(subflow, ports, self._simulation.back_path(subflow))
        return True

    def close_subflow(self, flow: FiveTuple, number: int) -> bool:
        return flow in self.running() and self._simulation.close_subflow(self._subflow(flow, number))

    def _subflow(self, flow: FiveTuple, number: int) -> int:
        return int(self._first[self._number[flow]]) + number


def _first_pair(topology: Topology, flow: PlannedFlow) -> FiveTuple:
    pair = subflow_pairs(topology, flow)[0]
    return FiveTuple(pair.laddr, pair.raddr, PROTO_TCP, pair.lport, pair.rport)
