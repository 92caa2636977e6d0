"""A thread that works beside a measurement, and whose errors `stop` raises."""

from __future__ import annotations

import dataclasses
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Protocol

import numpy as np
import numpy.typing as npt

from common.errors import RunError
from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.responsive.loop import NS_PER_S, ConnectionCount, Loop
from controllers.scheduler import Network
from engines.emulation.measure.socket_table import SocketTable, SubflowReadings
from engines.emulation.path_manager import PathManager
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.schedulers import Driver, loop_metrics
from model.spec import LinkEvent
from topos.topology import Topology


class Background(ABC):
    """Runs `_work` in a thread from `start` to `stop`; `_work` returns soon after `_over` is set."""

    def __init__(self, name: str) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._error: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop. Raises the error that ended the work early: a RefabricError, or a bug."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    @abstractmethod
    def _work(self) -> None:
        """Work until `_over` is set."""

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # a bug here must fail the point that waits for this thread
            self._error = error


class Links(Protocol):
    def set_share(self, event: LinkEvent) -> None: ...


@contextmanager
def carried_out(events: Sequence[LinkEvent], links: Links) -> Iterator[None]:
    """Carry out events while the block runs; their times count from its start.

    Events that are not due when the block ends do not happen. Raises at the end of the block what
    `set_share` raised.
    """
    if not events:
        yield
        return
    start, over = time.monotonic(), threading.Event()
    errors: list[RunError] = []

    def work() -> None:
        try:
            for event in sorted(events, key=lambda event: event.t_s):
                if over.wait(max(0.0, start + event.t_s - time.monotonic())):
                    return
                links.set_share(event)
        except RunError as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="link events", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if errors:
        raise errors[0]


SYN = 1
"""The SYN, which the kernel counts as acknowledged before any payload."""


@dataclass
class Looks:
    """Ticks of a scheduler: number due, number skipped or too long, and the longest duration."""

    due: int = 0
    late: int = 0
    longest_s: float = 0.0


class Ticking(Background):
    """Tick a driver every `interval_s` from `start` to `stop`; skip ticks that fall into a longer one."""

    def __init__(self, driver: Driver, interval_s: float) -> None:
        super().__init__("scheduler")
        self.looks = Looks()
        self.driver = driver
        self._interval_s = interval_s

    @property
    def metrics(self) -> Mapping[str, float]:
        account = self.driver.account
        return {
            **account.counts,
            **account.times,
            "scheduler_looks": self.looks.due,
            "scheduler_late": self.looks.late,
            "scheduler_ms_max": 1000 * self.looks.longest_s,
        }

    def _work(self) -> None:
        begun_s, number = time.monotonic(), 1
        while not self._over.wait(max(0.0, begun_s + number * self._interval_s - time.monotonic())):
            began_s = time.monotonic()
            self.driver.tick(began_s - begun_s)
            ended_s = time.monotonic()
            following = max(number + 1, int((ended_s - begun_s) / self._interval_s) + 1)
            self._note(number, following, ended_s - began_s)
            number = following

    def _note(self, number: int, following: int, took_s: float) -> None:
        left_out = following - number - 1
        self.looks.due += 1 + left_out
        self.looks.late += left_out + (left_out > 0)
        self.looks.longest_s = max(self.looks.longest_s, took_s)


@contextmanager
def ticking(driver: Driver, interval_ms: float) -> Iterator[Ticking]:
    """Tick a driver while the block runs. Raises the error of a tick at the end of the block."""
    clock = Ticking(driver, interval_ms / 1000)
    clock.start()
    try:
        yield clock
    finally:
        clock.stop()


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
