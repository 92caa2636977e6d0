"""Noise: CPUs that stall at random, on purpose, and how late deliveries are by that. Pure.

With stalls of random length L that begin every T on average, a packet due at a random time is late by more
than x with probability E[max(0, L - x)] / T: it is due in a stall that still has more than x to go. The
lengths are uniform, so its quantiles have a closed form (`lateness_ms`).

Effects of lateness are compared at equal shares of the delay that packets have anyway (`delay_budget_us`).
"""

from __future__ import annotations

import math
import re

from common.errors import UsageError
from fabric.plan import FRAME_BITS
from model.spec import (
    CLOCKS,
    NOWHERE,
    STALLED,
    LinkSpec,
    NoiseSpec,
    RunSpec,
)

QUIET = NoiseSpec()
MOST_STALL_MS = 500.0
MOST_SHARE = 0.5
"""Of the time in stalls: beyond, the kernel's limit on real-time threads comes near."""
SHORTEST, LONGEST, EVERY = 0.5, 2.0, 100 / 3
"""Of stalls whose lateness has a given 99th percentile, in multiples of that: 3.75 % of the time is lost."""
_STALLS = re.compile(r"(?P<where>[a-z]+):(?P<every>[\d.]+):(?P<least>[\d.]+)-(?P<most>[\d.]+)")


def noisy(spec: RunSpec) -> bool:
    return spec.noise.where != NOWHERE


def stalled_share(noise: NoiseSpec) -> float:
    """Of the time, how much lies in stalls."""
    if not noise.where:
        return 0.0
    return (noise.least_ms + noise.most_ms) / 2 / noise.every_ms if noise.every_ms > 0 else math.inf


def late_share(noise: NoiseSpec, late_ms: float) -> float:
    """Probability that a packet due at a random time is late by more than `late_ms`."""
    if not noise.where or late_ms >= noise.most_ms:
        return 0.0
    if late_ms <= noise.least_ms:
        return ((noise.least_ms + noise.most_ms) / 2 - late_ms) / noise.every_ms
    width = noise.most_ms - noise.least_ms
    return (noise.most_ms - late_ms) ** 2 / (2 * width) / noise.every_ms


def lateness_ms(noise: NoiseSpec, quantile: float) -> float:
    """The inverse of `late_share`: e.g. the 99th percentile of lateness for `quantile` 0.99."""
    late = 1 - quantile
    if late_share(noise, 0.0) <= late:
        return 0.0
    if late_share(noise, noise.least_ms) <= late:
        return (noise.least_ms + noise.most_ms) / 2 - late * noise.every_ms
    return noise.most_ms - math.sqrt(2 * (noise.most_ms - noise.least_ms) * late * noise.every_ms)


def stalls_of(where: str, p99_ms: float) -> NoiseSpec:
    """Stalls by which the 99th percentile of lateness is `p99_ms`, as a hypervisor with other guests makes
    them: from half of that to twice as long."""
    times_ms = (round(part * p99_ms, 3) for part in (EVERY, SHORTEST, LONGEST))
    return NoiseSpec(where, *times_ms)


def delay_budget_us(spec: RunSpec, hops: int) -> float:
    """What a full frame takes from host to host over `hops` links, one of whose queues is full: that queue's
    time, propagation and transmission, in microseconds."""
    return queue_us(spec.link) + hops * (FRAME_BITS / spec.link.rate_mbps + spec.link.delay_us)


def queue_us(link: LinkSpec) -> float:
    """Time that a full queue of a switch's port takes to drain; 0 where it has no limit."""
    bits = link.queue_bytes * 8 if link.queue_bytes else link.queue_pkts * FRAME_BITS
    return bits / link.rate_mbps


def stalls_words(noise: NoiseSpec) -> str:
    """As one types it: `all:100:2-6`; empty where there are none."""
    if not noise.where:
        return ""
    every, least, most = map(_digits, (noise.every_ms, noise.least_ms, noise.most_ms))
    return f"{noise.where}:{every}:{least}-{most}"


def _digits(value: float) -> str:
    """All that are needed to read it again."""
    return repr(value).removesuffix(".0")


def parse_stalls(text: str) -> NoiseSpec:
    """`WHERE:EVERY_MS:LEAST-MOST_MS`, e.g. `all:100:2-6`, or `none`. Raises UsageError."""
    if text == "none":
        return QUIET
    found = _STALLS.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        noise = NoiseSpec(found["where"], float(found["every"]), float(found["least"]), float(found["most"]))
    except ValueError:
        raise UsageError(
            f"--stalls {text}: write WHERE:EVERY_MS:LEAST-MOST_MS, e.g. --stalls all:100:2-6, or none"
        ) from None
    check_noise(noise)
    return noise


def check_noise(noise: NoiseSpec) -> None:
    """Raises UsageError for stalls that cannot be made."""
    words = stalls_words(noise)
    if noise.where not in STALLED:
        raise UsageError(f"--stalls {words}: '{noise.where}' is not a place; choose fabric, hosts or all")
    if not noise.where:
        return
    if not 0 < noise.least_ms <= noise.most_ms <= MOST_STALL_MS:
        raise UsageError(
            f"--stalls {words}: a stall lasts LEAST to MOST ms, above 0 and at most {MOST_STALL_MS:g}"
        )
    if not stalled_share(noise) <= MOST_SHARE:
        raise UsageError(
            f"--stalls {words}: {100 * stalled_share(noise):.0f} % of the time would be stalls, at most "
            f"{100 * MOST_SHARE:.0f} % may be: make them shorter or rarer"
        )


def check_clock(clock: str) -> None:
    """Raises UsageError for a clock that the fabric does not have."""
    if clock not in CLOCKS:
        raise UsageError(f"--clock {clock}: choose {' or '.join(CLOCKS)}")
