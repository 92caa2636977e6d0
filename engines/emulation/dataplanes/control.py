"""What changes a network while it is measured: link events, a flow scheduler, responsive multipath TCP.

Each is a thread beside the measurement, by the machine's clock. `with` starts and ends it; the end raises the
error that ended its work early.
"""

from __future__ import annotations

import dataclasses
import operator
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Self

import numpy as np
import numpy.typing as npt

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.responsive.loop import NS_PER_S, Loop
from controllers.scheduler import Network
from engines.emulation.dataplanes.dataplane import Change
from engines.emulation.measure.socket_table import SocketReadings, SocketTable
from engines.emulation.path_manager import PathManager
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.schedulers import Driver, loop_metrics
from topos.topology import Topology

SYN = 1
"""The SYN, which the kernel counts as acknowledged before any payload."""
MIN_PORT, MAX_PORT, PORT_STEP = 1024, 32767, 17
"""Local ports of a subflow that is opened again: its port from before is in TIME_WAIT for a minute. They stay
below those that the kernel chooses (socket_table.EPHEMERAL)."""


class Background(ABC):
    """Runs `_work` in a thread during a `with` block; `_work` returns soon after `_over` is set."""

    def __init__(self, name: str) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._error: Exception | None = None
        self._begun_s = 0.0

    def __enter__(self) -> Self:
        self._begun_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop. Raises the error that ended the work early, if the block itself did not fail."""
        self._over.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    @abstractmethod
    def _work(self) -> None:
        """Work until `_over` is set."""

    def _is_over_at(self, t_s: float) -> bool:
        """Wait until `t_s` on the monotonic clock; return whether the block ended before."""
        return self._over.wait(max(0.0, t_s - time.monotonic()))

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # a bug here must fail the point that waits for this thread
            self._error = error


class LinkEvents(Background):
    """Links that fail, degrade or recover, and routing that follows: carries out each change at its time
    since the block began.

    Changes that are not due when the block ends do not happen.
    """

    def __init__(self, changes: Sequence[Change]) -> None:
        super().__init__("link events")
        self._changes = sorted(changes, key=operator.itemgetter(0))

    def _work(self) -> None:
        for t_s, change in self._changes:
            if self._is_over_at(self._begun_s + t_s):
                return
            change()


class SchedulerClock(Background):
    """Ticks a central flow scheduler every `interval_ms`; ticks that fall into a longer one are skipped."""

    def __init__(self, driver: Driver, interval_ms: float) -> None:
        super().__init__("scheduler")
        self.driver = driver
        self.due = self.late = 0
        """Ticks that were due, and those of them that were skipped or too long."""
        self._interval_s = interval_ms / 1000
        self._longest_s = 0.0

    @property
    def metrics(self) -> Mapping[str, float]:
        account = self.driver.account
        return {
            **account.counts,
            **account.times,
            "scheduler_looks": self.due,
            "scheduler_late": self.late,
            "scheduler_ms_max": 1000 * self._longest_s,
        }

    def _work(self) -> None:
        self._begun_s, number = time.monotonic(), 1
        while not self._is_over_at(self._begun_s + number * self._interval_s):
            tick_s = time.monotonic()
            self.driver.tick(tick_s - self._begun_s)
            ended_s = time.monotonic()
            following = max(number + 1, int((ended_s - self._begun_s) / self._interval_s) + 1)
            skipped = following - number - 1
            self.due += 1 + skipped
            self.late += skipped + (skipped > 0)
            self._longest_s = max(self._longest_s, ended_s - tick_s)
            number = following


def bytes_sent(table: SocketTable, flows: Sequence[PlannedFlow]) -> Callable[[], Mapping[FiveTuple, int]]:
    """Return a function that reads the payload bytes acknowledged on each active subflow.

    Subflows that have sent nothing, and flows whose whole size is acknowledged, are not active.
    """
    sizes = np.array([flow.size_bytes for flow in flows], np.int64)

    def read() -> Mapping[FiveTuple, int]:
        seen = table.read()
        payload = np.maximum(seen.bytes_acked - SYN, 0)
        of_flow = np.bincount(seen.flow, weights=payload, minlength=len(sizes))
        ended = (sizes > 0) & (of_flow >= sizes)
        chosen = np.flatnonzero((payload > 0) & ~ended[seen.flow])
        columns = (seen.laddr, seen.raddr, seen.lport, seen.rport, payload)
        rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
        return {
            FiveTuple(str(IPv4Address(laddr)), str(IPv4Address(raddr)), PROTO_TCP, lport, rport): octets
            for laddr, raddr, lport, rport, octets in rows
        }

    return read


class KernelConnections:
    """`controllers.responsive.loop.MultipathNetwork` over real hosts: monitors read the kernel's sockets, and
    netlink opens subflows of running connections, each on a path that was set in the fabric before.

    Connections run from their first acknowledged byte until their whole size is acknowledged.
    """

    def __init__(
        self,
        topology: Topology,
        flows: Sequence[PlannedFlow],
        table: SocketTable,
        network: Network,
        manager: PathManager | None,
    ) -> None:
        """`network` sets paths. Without a `manager` (plain TCP) no subflow can be opened."""

        def five_tuple(pair: AddressPair) -> FiveTuple:
            return FiveTuple(pair.laddr, pair.raddr, PROTO_TCP, pair.lport, pair.rport)

        self._pairs = [[five_tuple(pair) for pair in subflow_pairs(topology, flow)] for flow in flows]
        self._number = {pairs[0]: i for i, pairs in enumerate(self._pairs)}
        self._sizes = np.array([flow.size_bytes for flow in flows], np.int64)
        self._table = table
        self._network = network
        self._manager = manager
        self._ended: set[int] = set()
        self._acked: dict[tuple[int, int], int] = {}
        self._reopened: Counter[tuple[int, int]] = Counter()
        self._latest: Mapping[FiveTuple, int] = {}

    def connections(self) -> Mapping[FiveTuple, int]:
        seen = self._table.read()
        octets = self._octets(seen)
        present = np.bincount(seen.flow, minlength=len(self._sizes)) > 0
        self._ended |= set(np.flatnonzero((self._sizes > 0) & (octets >= self._sizes)).tolist())
        runs = [i for i in np.flatnonzero(present & (octets > 0)).tolist() if i not in self._ended]
        self._latest = {self._pairs[i][0]: int(octets[i]) for i in runs}
        return self._latest

    def running(self) -> frozenset[FiveTuple]:
        return frozenset(self.connections())

    def open_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if not self.move_subflow(flow, number, path) or self._manager is None:
            return False
        return self._manager.open_subflow((flow.src, flow.sport), number, self._pair(flow, number).sport)

    def move_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if flow not in self._latest:
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

    def _octets(self, seen: SocketReadings) -> npt.NDArray[np.int64]:
        """Return the bytes acknowledged so far of each flow, those of subflows that were closed included."""
        payload = np.maximum(seen.bytes_acked - SYN, 0)
        self._acked |= zip(
            zip(seen.flow.tolist(), seen.lport.tolist(), strict=True), payload.tolist(), strict=True
        )
        flows = np.array([flow for flow, _ in self._acked], np.int64)
        octets = np.bincount(flows, weights=list(self._acked.values()), minlength=len(self._sizes))
        return octets.astype(np.int64)


class LoopClock(Background):
    """Runs the loop of responsive multipath TCP. Connections keep their subflows after it."""

    def __init__(self, loop: Loop, network: KernelConnections) -> None:
        super().__init__("controller")
        self._loop = loop
        self._network = network
        self._ended_s = 0.0
        self._cpu_s = 0.0
        self._late_s = 0.0

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
            while not self._is_over_at(due_s := self._begun_s + self._loop.next_ns / NS_PER_S):
                self._late_s = max(self._late_s, time.monotonic() - due_s)
                began_s = time.thread_time()
                self._loop.run(self._network, round((time.monotonic() - self._begun_s) * NS_PER_S))
                self._cpu_s += time.thread_time() - began_s
        finally:
            self._ended_s = time.monotonic()
