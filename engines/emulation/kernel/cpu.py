"""CPU use of the machine: /proc/stat and /proc/net/softnet_stat (Documentation/filesystems/proc.rst).

Both files count for the whole machine, in every namespace.
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
    """CPU ticks since boot (USER_HZ, usually 10 ms). `user` includes nice and guest time, `system` includes
    hard interrupts, `idle` includes waiting for disks."""

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
    """CPU use in percent of an interval; busy is everything but idle, the sum of the other four."""

    busy_pct: float
    user_pct: float
    system_pct: float
    softirq_pct: float
    steal_pct: float


@dataclass(frozen=True, slots=True)
class CpuSample:
    """CPU use of the machine and of each CPU over the interval that ended at monotonic time `t_s`."""

    t_s: float
    machine: CpuUse
    cpus: Mapping[str, CpuUse]


@dataclass(frozen=True, slots=True)
class Softnet:
    """Packets since boot over all CPUs: processed, and dropped because the backlog was full. `time_squeeze`
    counts softirqs that used up their budget with work left."""

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
    """Return the cpu lines of /proc/stat: `cpu` (total), `cpu0`, ... Raises ValueError on other text."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    times = {}
    for name, *fields in lines:
        user, nice, system, idle, iowait, irq, softirq, *rest = map(int, fields)
        times[name] = CpuTimes(user + nice, system + irq, idle + iowait, softirq, rest[0] if rest else 0)
    if ALL not in times:
        raise ValueError("no `cpu` line in /proc/stat")
    return times


def parse_softnet(text: str) -> Softnet:
    """Return the sum of the lines of /proc/net/softnet_stat (hexadecimal, one line per CPU)."""
    rows = [[int(field, 16) for field in line.split()[:3]] for line in text.splitlines()]
    return Softnet(*(sum(column) for column in zip(*rows, strict=True)))


def use(before: CpuTimes, after: CpuTimes) -> CpuUse:
    """Return the use between two readings; 0 if no tick has passed. A decreasing iowait counts as 0."""
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
    """Sample CPU use: each `sample()` covers the time since the previous one, or since construction.

    "The machine" means the CPUs this process may use, because a container has no other CPUs.
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
    """Return the sum over the named CPUs; missing CPUs are skipped."""
    rows = [times[name] for name in names if name in times]
    return CpuTimes(*(sum(column) for column in zip(*(astuple(row) for row in rows), strict=True)))
