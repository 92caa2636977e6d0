"""Responsive multipath TCP between real hosts: monitors read the kernel's sockets, and netlink opens subflows
of running connections, each on a path that was set in the fabric before."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.responsive.loop import ConnectionCount, Loop
from controllers.responsive.outage import NS_PER_S
from controllers.scheduler import Network
from engines.emulation.dataplanes.background import Background
from engines.emulation.dataplanes.scheduled import SYN
from engines.emulation.measure.socket_table import SocketTable, SubflowReadings
from engines.emulation.mptcp.path_manager import PathManager
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.responsive import loop_metrics
from topos.topology import Topology

MIN_PORT, MAX_PORT, PORT_STEP = 1024, 32767, 17
"""Local ports of a subflow that is opened again: its port from before is in TIME_WAIT for a minute. They stay
below those that the kernel chooses (socket_table.EPHEMERAL)."""


class KernelConnections:
    """`controllers.responsive.loop.MultipathNetwork` over real hosts. Connections run from their first
    acknowledged byte until their whole size is acknowledged."""

    def __init__(
        self,
        topology: Topology,
        flows: Sequence[PlannedFlow],
        table: SocketTable,
        network: Network,
        manager: PathManager | None,
    ) -> None:
        """`network` sets paths. Without a `manager` (plain TCP) no subflow can be opened."""
        self._pairs = [[_tuple(pair) for pair in subflow_pairs(topology, flow)] for flow in flows]
        self._number = {pairs[0]: i for i, pairs in enumerate(self._pairs)}
        self._sizes = np.array([flow.size_bytes for flow in flows], np.int64)
        self._table = table
        self._network = network
        self._manager = manager
        self._ended: set[int] = set()
        self._acked: dict[tuple[int, int], int] = {}
        self._reopened: Counter[tuple[int, int]] = Counter()
        self._latest: list[ConnectionCount] = []

    def connections(self) -> Sequence[ConnectionCount]:
        seen = self._table.read()
        octets = self._octets(seen)
        present = np.bincount(seen.flow, minlength=len(self._sizes)) > 0
        self._ended |= set(np.flatnonzero((self._sizes > 0) & (octets >= self._sizes)).tolist())
        runs = [i for i in np.flatnonzero(present & (octets > 0)).tolist() if i not in self._ended]
        self._latest = [ConnectionCount(self._pairs[i][0], int(octets[i])) for i in runs]
        return self._latest

    def running(self) -> frozenset[FiveTuple]:
        return frozenset(each.flow for each in self.connections())

    def open_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if not self.move_subflow(flow, number, path) or self._manager is None:
            return False
        return self._manager.open_subflow((flow.src, flow.sport), number, self._pair(flow, number).sport)

    def move_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if all(each.flow != flow for each in self._latest):
            return False
        self._network.set_path(self._pair(flow, number), path)
        return True

    def close_subflow(self, flow: FiveTuple, number: int) -> bool:
        if self._manager is None or not self._manager.close_subflow((flow.src, flow.sport), number):
            return False
        self._network.clear_path(self._pair(flow, number))
        self._reopened[self._number[flow], number] += 1
        return True

    def _pair(self, flow: FiveTuple, number: int) -> FiveTuple:
        """Return the 5-tuple of a subflow, which is another one each time that it is opened again."""
        i = self._number[flow]
        usual = self._pairs[i][number]
        moved = (usual.sport - MIN_PORT + PORT_STEP * self._reopened[i, number]) % (MAX_PORT - MIN_PORT)
        return dataclasses.replace(usual, sport=MIN_PORT + moved)

    def _octets(self, seen: SubflowReadings) -> npt.NDArray[np.int64]:
        """Return the bytes acknowledged so far of each flow, those of subflows that were closed included."""
        payload = np.maximum(seen.bytes_acked - SYN, 0)
        self._acked |= zip(
            zip(seen.flow.tolist(), seen.lport.tolist(), strict=True), payload.tolist(), strict=True
        )
        flows = np.array([flow for flow, _ in self._acked], np.int64)
        octets = np.bincount(flows, weights=list(self._acked.values()), minlength=len(self._sizes))
        return octets.astype(np.int64)


class Controlling(Background):
    """Runs a loop by the machine's clock from `start` to `stop`. Connections keep their subflows after it."""

    def __init__(self, loop: Loop, network: KernelConnections) -> None:
        super().__init__("controller")
        self._loop = loop
        self._network = network
        self._begun_s = 0.0
        self._ended_s = 0.0
        self._cpu_s = 0.0
        self._late_s = 0.0

    def start(self) -> None:
        self._begun_s = time.monotonic()
        super().start()

    def subflows(self, from_s: float) -> Mapping[FiveTuple, int]:
        """Return how many subflows each connection had at a monotonic time, without those that the controller
        closed later."""
        from_ns = (from_s - self._begun_s) * NS_PER_S
        closed = Counter(each.flow for each in tuple(self._loop.closed) if each.t_ns > from_ns)
        granted = self._loop.subflows(from_ns)
        return {flow: max(1, count - closed[flow]) for flow, count in granted.items()}

    @property
    def metrics(self) -> Mapping[str, float]:
        seconds = max((self._ended_s or time.monotonic()) - self._begun_s, 1e-9)
        return {
            **loop_metrics(self._loop, seconds),
            "controller_cpu_s": self._cpu_s,
            "controller_late_ms_max": 1000 * self._late_s,
        }

    def _work(self) -> None:
        try:
            while not self._over.wait(max(0.0, self._due_s() - time.monotonic())):
                self._late_s = max(self._late_s, time.monotonic() - self._due_s())
                began_s = time.thread_time()
                self._loop.run(self._network, round((time.monotonic() - self._begun_s) * NS_PER_S))
                self._cpu_s += time.thread_time() - began_s
        finally:
            self._ended_s = time.monotonic()

    def _due_s(self) -> float:
        return self._begun_s + self._loop.next_ns / NS_PER_S


@contextmanager
def controlling(loop: Loop, network: KernelConnections) -> Iterator[Controlling]:
    """Run a loop while the block runs. Raises the loop's error at the end of the block."""
    control = Controlling(loop, network)
    control.start()
    try:
        yield control
    finally:
        control.stop()


def _tuple(pair: AddressPair) -> FiveTuple:
    return FiveTuple(pair.laddr, pair.raddr, PROTO_TCP, pair.lport, pair.rport)
