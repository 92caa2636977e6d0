"""What /proc says: CPU use, processes, counters of TCP and MPTCP, open files.

Source: Documentation/filesystems/proc.rst, proc_pid_stat(5).

/proc/stat and /proc/net/softnet_stat count for the whole machine, in every namespace. Inside the PID
namespace /proc shows only the run's processes, but /proc/stat the whole machine. The kernel's own work is
system time, which cannot be attributed here. TCP's and MPTCP's counters are those of each namespace; names
are the kernel's with their group as prefix: `Tcp.RetransSegs`, `MPTcpExt.MPJoinSynAckRx`. Source:
net/ipv4/proc.c, net/mptcp/mib.c.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from common.errors import HostUnfitError
from engines.emulation.kernel.namespaces import HostRef, map_in_netns

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
    """CPU use of the machine and of each CPU over an interval."""

    machine: CpuUse
    cpus: Mapping[str, CpuUse]


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


def softnet_dropped(text: str = "") -> int:
    """Return packets dropped since boot because a CPU's backlog was full: hexadecimal, one line per CPU, in
    SOFTNET_STAT or `text`."""
    lines = (text or SOFTNET_STAT.read_text()).splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


def use(before: CpuTimes, after: CpuTimes) -> CpuUse:
    """Return the use between two readings; 0 if no tick has passed. A decreasing iowait counts as 0."""
    ticks = after.total - before.total

    def percent(later: int, earlier: int) -> float:
        return max(0.0, 100.0 * (later - earlier) / ticks) if ticks > 0 else 0.0

    user = percent(after.user, before.user)
    system = percent(after.system, before.system)
    softirq = percent(after.softirq, before.softirq)
    steal = percent(after.steal, before.steal)
    busy = min(100.0, user + system + softirq + steal)  # rounding may add a last digit
    return CpuUse(busy, user, system, softirq, steal)


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
        return CpuSample(machine, uses)


def total(times: Mapping[str, CpuTimes], names: Iterable[str]) -> CpuTimes:
    """Return the sum over the named CPUs; missing CPUs are skipped."""
    rows = [times[name] for name in names if name in times]
    return CpuTimes(*(sum(column) for column in zip(*(astuple(row) for row in rows), strict=True)))


STATE, USER_TICKS, SYSTEM_TICKS, CHILDREN_USER_TICKS = 0, 11, 12, 13
"""Fields after the name of the program, from 0."""


def stat_fields(pid: int) -> list[str]:
    """Return the fields after the name of the program. Raises OSError if there is no such process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process's threads, user and system, in s. Raises OSError."""
    found = stat_fields(pid)
    return (int(found[USER_TICKS]) + int(found[SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")


def is_zombie(pid: int) -> bool:
    """Return whether the first thread has ended. The process can be waited for only when all have, seconds
    later on a busy machine."""
    try:
        return stat_fields(pid)[STATE] == "Z"
    except OSError:
        return False


_FILES = ("snmp", "netstat")
_GROUPS = ("Tcp", "TcpExt", "MPTcpExt")


def parse_netstat(text: str) -> Counter[str]:
    """Return the counters of _GROUPS in one file, which alternates lines of names and of values."""
    lines = text.splitlines()
    found: Counter[str] = Counter()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group, _, columns = names.partition(":")
        if group in _GROUPS:
            numbers = values.partition(":")[2].split()
            found.update(
                {
                    f"{group}.{name}": int(number)
                    for name, number in zip(columns.split(), numbers, strict=True)
                }
            )
    return found


def read_netstat(hosts: Sequence[HostRef]) -> Counter[str]:
    """Return the counters summed over `hosts`, since the hosts were created. About 0.1 ms per host."""

    def of_host() -> Counter[str]:
        found: Counter[str] = Counter()
        for name in _FILES:
            found += parse_netstat(Path("/proc/thread-self/net", name).read_text())
        return found

    return sum(map_in_netns([(host.pid, of_host) for host in hosts]), Counter())


def netstat_difference(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Return the increments between two readings; counters that did not change are omitted."""
    return {name: value - before[name] for name, value in sorted(after.items()) if value != before[name]}


UserTicks = tuple[int, int, int]
"""Ticks since boot: all CPU time, user mode of the machine, user mode of the run."""


def read_user_ticks() -> UserTicks:
    """Return the ticks so far on the CPUs that this process may use."""
    times = parse_stat(STAT.read_text())
    ours = total(times, [f"cpu{number}" for number in os.sched_getaffinity(0)])
    own = sum(_user_ticks(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return ours.total, ours.user, own


def others_pct(before: UserTicks, after: UserTicks) -> float:
    """Return the percentage of CPU time that others used in user mode; 0 if no tick has passed."""
    ticks, machine, own = (now - then for now, then in zip(after, before, strict=True))
    return max(0.0, 100.0 * (machine - own) / ticks) if ticks > 0 else 0.0


def _user_ticks(pid: int) -> int:
    """Return the user ticks of a process and of its ended children; 0 if it has just ended."""
    try:
        found = stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[USER_TICKS]) + int(found[CHILDREN_USER_TICKS])


def reserve_fds(count: int) -> None:
    """Allow this process `count` more open files. Raises HostUnfitError if the limit cannot be raised."""
    needed = count + sum(1 for _ in Path("/proc/self/fd").iterdir()) + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    ceiling = hard if hard == resource.RLIM_INFINITY else max(hard, needed)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, ceiling))
    except (OSError, ValueError) as failure:
        raise HostUnfitError(
            f"{needed} open files are needed, but the limit is {hard}: {failure}; run: ulimit -Hn {needed}"
        ) from failure
