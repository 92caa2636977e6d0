"""A central flow scheduler for real hosts: a thread that ticks by the real clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address

import numpy as np

from controllers.hashing import PROTO_TCP, FiveTuple
from engines.emulation.dataplanes.background import Background
from engines.emulation.measure.socket_table import SocketTable
from model.flows import PlannedFlow
from model.schedulers import Driver

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
