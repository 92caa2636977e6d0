"""`controllers.responsive.loop.MultipathNetwork` over a simulation whose subflows join on demand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.responsive.loop import ConnectionCount
from controllers.rules import Routes
from engines.core_setup.stack import NEVER_PS
from fabric._core import Simulation
from model.flows import PlannedFlow, subflow_pairs
from model.network_plan import ports_along
from model.spec import RunSpec, sub_seed
from topos.topology import Topology


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

    def connections(self) -> Sequence[ConnectionCount]:
        self.running()
        acked = self._simulation.subflows()["acked_bytes"]
        octets = np.add.reduceat(acked, self._first[:-1])
        return [ConnectionCount(flow, int(octets[i])) for flow, i in self._number.items()]

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
