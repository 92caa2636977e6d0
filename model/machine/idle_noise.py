"""How late an idle machine wakes a thread that waits for nothing but the clock: its noise. Pure.

A thread at real-time priority is late only where nothing of its own machine could run either: the hypervisor
took the CPU away, or the kernel worked in an interrupt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FLOOR_US = 250.0
"""Noise below this does not matter: a packet takes 121 us at 100 Mb/s, the highest rate calibration tries."""
FLOOR_STEAL_PCT = 2.0
"""One second of two CPUs has 200 ticks, so this is 4 of them."""
FACTOR = 2.0
"""Noise that changed by less is the same noise."""
LONG_US = 1000.0
_NUMBERS = ("seconds", "late_p50_us", "late_p99_us", "longest_us", "steal_pct")


@dataclass(frozen=True)
class MachineNoise:
    """How late wake-ups were in `seconds`, over all CPUs, and the share of CPU time the hypervisor took.

    `by_cpu` has (CPU, 99th percentile, longest) of each CPU in microseconds. `realtime` is False where the
    kernel refused real-time priority: other processes then count as noise.
    """

    seconds: float
    late_p50_us: float
    late_p99_us: float
    longest_us: float
    steal_pct: float
    by_cpu: tuple[tuple[int, float, float], ...] = ()
    realtime: bool = True

    def __str__(self) -> str:
        """Return one line: who was late, by how much, and what that means."""
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
            raise ValueError("machine noise is a record of numbers")
        try:
            by_cpu = tuple((int(cpu), float(p99), float(most)) for cpu, p99, most in data["by_cpu"])
            numbers = {name: float(data[name]) for name in _NUMBERS}
        except (KeyError, TypeError) as error:
            raise ValueError(f"machine noise lacks {error}") from error
        if not all(math.isfinite(number) and number >= 0 for number in numbers.values()):
            raise ValueError("machine noise is never negative")
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
    """Whether noise changed by FACTOR or more, above the floors; records of unlike priority always differ."""
    if one.realtime != other.realtime:
        return True
    late = _changed(one.late_p99_us, other.late_p99_us, FLOOR_US)
    return late or _changed(one.steal_pct, other.steal_pct, FLOOR_STEAL_PCT)


def _changed(one: float, other: float, floor: float) -> bool:
    low, high = sorted((max(one, floor), max(other, floor)))
    return high >= FACTOR * low


def _listed(numbers: Sequence[int]) -> str:
    """`0 and 1`, `0 to 7`."""
    if len(numbers) > 2:
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(map(str, numbers))


def _ms(value_us: float) -> str:
    return f"{value_us / 1000:.2f}" if value_us < LONG_US else f"{value_us / 1000:.1f}"
