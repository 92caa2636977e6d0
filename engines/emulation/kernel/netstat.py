"""The kernel's own TCP and MPTCP counters, summed over hosts: /proc/net/{snmp,netstat} of each namespace.

Names are the kernel's, prefixed by their group: `Tcp.RetransSegs`, `MPTcpExt.MPJoinSynAckRx`.
Source: net/ipv4/proc.c, net/mptcp/mib.c.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from engines.emulation.kernel.netns import HostRef, map_in_netns

_FILES = ("snmp", "netstat")
_GROUPS = ("Tcp", "TcpExt", "MPTcpExt")


def parse(text: str) -> Counter[str]:
    """The counters of the groups of interest in one such file: a line of names, then a line of values."""
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


def read(hosts: Sequence[HostRef]) -> Counter[str]:
    """Counters since the hosts exist, summed over `hosts`. About 0.1 ms a host."""

    def of_host() -> Counter[str]:
        found: Counter[str] = Counter()
        for name in _FILES:
            found += parse(Path("/proc/thread-self/net", name).read_text())
        return found

    return sum(map_in_netns([(host.pid, of_host) for host in hosts]), Counter())


def difference(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """What was counted in between; counters that did not move are left out."""
    return {name: value - before[name] for name, value in sorted(after.items()) if value != before[name]}
