"""How busy the machine is: /proc/stat and /proc/net/softnet_stat (Documentation/filesystems/proc.rst).

Both count for the whole machine, whatever namespace reads them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

STAT = Path("/proc/stat")
SOFTNET_STAT = Path("/proc/net/softnet_stat")
ALL = "cpu"


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Ticks (USER_HZ, mostly 10 ms) since boot. nice is in `user`, hard interrupts in `system`,
    waiting for disks in `idle`; time of guests is in `user` already."""

    user: int
    system: int
    idle: int
    softirq: int
    steal: int

    @property
    def total(self) -> int:
        return self.user + self.system + self.idle + self.softirq + self.steal


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Percent of the interval; busy is all but idle, and the sum of the other four."""

    busy_pct: float
    user_pct: float
    system_pct: float
    softirq_pct: float
    steal_pct: float


@dataclass(frozen=True, slots=True)
class CpuSample:
    """Use over the interval that ended at monotonic second `t_s`: the machine and each CPU."""

    t_s: float
    machine: CpuUse
    cpus: Mapping[str, CpuUse]


@dataclass(frozen=True, slots=True)
class Softnet:
    """Packets since boot over all CPUs: processed, dropped because the backlog was full; and how often a
    softirq ran out of budget with work left."""

    processed: int
    dropped: int
    time_squeeze: int

    def __sub__(self, earlier: Softnet) -> Softnet:
        return Softnet(
            self.processed - earlier.processed,
            self.dropped - earlier.dropped,
            self.time_squeeze - earlier.time_squeeze,
        )


def parse_stat(text: str) -> dict[str, CpuTimes]:
    """The cpu lines of /proc/stat: `cpu` (all of them), `cpu0` ... Raises ValueError on other text."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    times = {}
    for name, *fields in lines:
        user, nice, system, idle, iowait, irq, softirq, *rest = map(int, fields)
        times[name] = CpuTimes(user + nice, system + irq, idle + iowait, softirq, rest[0] if rest else 0)
    if ALL not in times:
        raise ValueError("no `cpu` line in /proc/stat")
    return times


def parse_softnet(text: str) -> Softnet:
    """Sum the lines of /proc/net/softnet_stat (hexadecimal, one line a CPU)."""
    rows = [[int(field, 16) for field in line.split()[:3]] for line in text.splitlines()]
    return Softnet(*(sum(column) for column in zip(*rows, strict=True)))


def use(before: CpuTimes, after: CpuTimes) -> CpuUse:
    """Use between two readings; all 0 when no tick has passed. iowait may run backwards: never below 0."""
    ticks = after.total - before.total

    def percent(later: int, earlier: int) -> float:
        return max(0.0, 100.0 * (later - earlier) / ticks) if ticks > 0 else 0.0

    user = percent(after.user, before.user)
    system = percent(after.system, before.system)
    softirq = percent(after.softirq, before.softirq)
    steal = percent(after.steal, before.steal)
    return CpuUse(user + system + softirq + steal, user, system, softirq, steal)


def read_softnet() -> Softnet:
    return parse_softnet(SOFTNET_STAT.read_text())


class CpuSampler:
    """Each `sample()` is the use since the one before (the first: since construction).

    "The machine" is the CPUs this process may run on: a container on a large host owns no others.
    """

    def __init__(self) -> None:
        self._ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        self._last = parse_stat(STAT.read_text())

    def sample(self) -> CpuSample:
        now = parse_stat(STAT.read_text())
        uses = {name: use(self._last[name], now[name]) for name in sorted(self._ours & now.keys())}
        machine = use(total(self._last, self._ours), total(now, self._ours))
        self._last = now
        return CpuSample(time.monotonic(), machine, uses)


def total(times: Mapping[str, CpuTimes], names: Iterable[str]) -> CpuTimes:
    """The sum over the CPUs called `names`; those that are not there are left out."""
    rows = [times[name] for name in names if name in times]
    return CpuTimes(*(sum(column) for column in zip(*(astuple(row) for row in rows), strict=True)))
