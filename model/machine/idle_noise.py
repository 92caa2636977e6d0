"""Noise of an idle machine: how late it wakes a thread that waits only for the clock. Pure.

A thread with real-time priority is late only if nothing else could run on the CPU either: the hypervisor had
taken the CPU away, or the kernel was in an interrupt handler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FLOOR_US = 250.0
"""Noise below this is negligible: a packet takes 121 us at 100 Mb/s, the highest rate of calibration."""
FLOOR_STEAL_PCT = 2.0
"""One second of two CPUs has 200 ticks, so this limit is 4 ticks."""
FACTOR = 2.0
"""Two records differ if their noise differs by this factor."""
LONG_US = 1000.0
_NUMBERS = ("seconds", "late_p50_us", "late_p99_us", "longest_us", "steal_pct")


@dataclass(frozen=True)
class MachineNoise:
    """Lateness of wake-ups during `seconds` over all CPUs, and the share of CPU time the hypervisor took.

    `by_cpu` has (CPU, 99th percentile, longest) of each CPU in microseconds. `realtime` is False if the
    kernel refused real-time priority; other processes then count as noise.
    """

    seconds: float
    late_p50_us: float
    late_p99_us: float
    longest_us: float
    steal_pct: float
    by_cpu: tuple[tuple[int, float, float], ...] = ()
    realtime: bool = True

    def __str__(self) -> str:
        """Return one line: which CPUs were late, by how much, and the cause."""
        who = f"CPU {_listed([cpu for cpu, _, _ in self.by_cpu])}" if self.by_cpu else "CPUs"
        steal = f", {self.steal_pct:.1f} % of CPU time stolen" if self.steal_pct >= FLOOR_STEAL_PCT else ""
        late = f"{who} woke up {_ms(self.late_p99_us)} ms late at the 99th percentile"
        return f"{late}, {_ms(self.longest_us)} ms at most{steal}: {self._meaning()}"

    def _meaning(self) -> str:
        if self.quiet:
            return "quiet"
        by = "the hypervisor takes" if self.realtime else "other processes or the hypervisor take"
        return f"{by} CPU time away{' for milliseconds' if self.late_p99_us >= LONG_US else ''}"

    @property
    def quiet(self) -> bool:
        """Whether the noise is below both floors."""
        return self.late_p99_us < FLOOR_US and self.steal_pct < FLOOR_STEAL_PCT

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "seconds": self.seconds,
            "late_p50_us": self.late_p50_us,
            "late_p99_us": self.late_p99_us,
            "longest_us": self.longest_us,
            "steal_pct": self.steal_pct,
            "by_cpu": [list(one) for one in self.by_cpu],
            "realtime": self.realtime,
        }

    @classmethod
    def from_json(cls, data: object) -> MachineNoise:
        """Read a stored record. Raises ValueError for anything else."""
        if not isinstance(data, Mapping):
            raise ValueError("reading machine noise: the stored value is not a record")
        try:
            by_cpu = tuple((int(cpu), float(p99), float(most)) for cpu, p99, most in data["by_cpu"])
            numbers = {name: float(data[name]) for name in _NUMBERS}
        except (KeyError, TypeError) as error:
            raise ValueError(f"reading machine noise: the record lacks {error}") from error
        if not all(math.isfinite(number) and number >= 0 for number in numbers.values()):
            raise ValueError("reading machine noise: a number is negative or not finite")
        return cls(
            seconds=numbers["seconds"],
            late_p50_us=numbers["late_p50_us"],
            late_p99_us=numbers["late_p99_us"],
            longest_us=numbers["longest_us"],
            steal_pct=numbers["steal_pct"],
            by_cpu=by_cpu,
            realtime=bool(data.get("realtime", True)),
        )


def differs(one: MachineNoise, other: MachineNoise) -> bool:
    """Return whether noise above the floors changed by FACTOR; records of unequal priority always differ."""
    if one.realtime != other.realtime:
        return True
    late = _changed(one.late_p99_us, other.late_p99_us, FLOOR_US)
    return late or _changed(one.steal_pct, other.steal_pct, FLOOR_STEAL_PCT)


def _changed(one: float, other: float, floor: float) -> bool:
    low, high = sorted((max(one, floor), max(other, floor)))
    return high >= FACTOR * low


def _listed(numbers: Sequence[int]) -> str:
    """Return `0 and 1` or `0 to 7`."""
    if len(numbers) > 2:
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(map(str, numbers))


def _ms(value_us: float) -> str:
    return f"{value_us / 1000:.2f}" if value_us < LONG_US else f"{value_us / 1000:.1f}"
