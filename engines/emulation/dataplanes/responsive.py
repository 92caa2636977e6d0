"""Responsive multipath TCP between real hosts: monitors read the kernel's sockets, and subflows of running
connections are opened by netlink, each on the path that the fabric was set to before."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.responsive.loop import NS_PER_S, ConnectionCount, Loop
from controllers.scheduler import Network
from engines.emulation.dataplanes.background import Background
from engines.emulation.dataplanes.scheduled import SYN
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.mptcp.path_manager import PathManager
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.responsive import loop_metrics
from topos.topology import Topology


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
        self._latest: list[ConnectionCount] = []

    def connections(self) -> Sequence[ConnectionCount]:
        seen = self._table.read()
        payload = np.maximum(seen.bytes_acked - SYN, 0)
        octets = np.bincount(seen.flow, weights=payload, minlength=len(self._sizes)).astype(np.int64)
        present = np.bincount(seen.flow, minlength=len(self._sizes)) > 0
        self._ended |= set(np.flatnonzero((self._sizes > 0) & (octets >= self._sizes)).tolist())
        runs = [i for i in np.flatnonzero(present & (octets > 0)).tolist() if i not in self._ended]
        self._latest = [ConnectionCount(self._pairs[i][0], int(octets[i])) for i in runs]
        return self._latest

    def running(self) -> frozenset[FiveTuple]:
        return frozenset(each.flow for each in self.connections())

    def open_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if all(each.flow != flow for each in self._latest):
            return False
        pair = self._pairs[self._number[flow]][number]
        self._network.set_path(pair, path)
        if number == 0:
            return True
        return self._manager is not None and self._manager.open_subflow((flow.src, flow.sport), number)


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

    def subflows(self, before_s: float) -> Mapping[FiveTuple, int]:
        """Return how many subflows each connection had been granted at a monotonic time; 0 for none."""
        by_ns = (before_s - self._begun_s) * NS_PER_S
        granted: dict[FiveTuple, int] = {}
        for opened in tuple(self._loop.opened):
            if opened.t_ns <= by_ns:
                granted[opened.flow] = granted.get(opened.flow, 0) + 1
        return granted

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
