"""Injected noise: CPUs that stall at random, and how late that makes deliveries. Pure.

Stalls have a random length L and begin every T on average. A packet due at a random time is then late by
more than x with probability E[max(0, L - x)] / T: it falls into a stall that still lasts longer than x.
Lengths are uniform, so the quantiles of lateness have a closed form (`lateness_ms`).

Effects of lateness are compared at equal shares of the delay that packets have without noise
(`delay_budget_us`).
"""

from __future__ import annotations

import math
import re

from common.errors import UsageError
from fabric.plan import FRAME_BITS
from model.spec import NOWHERE, LinkSpec, NoiseSpec, RunSpec

QUIET = NoiseSpec()
SHORTEST, LONGEST, EVERY = 0.5, 2.0, 100 / 3
"""Shortest and longest stall and mean interval, as multiples of the wanted 99th percentile of lateness.
Stalls then take 3.75 % of the time."""
_STALLS = re.compile(r"(?P<where>[a-z]+):(?P<every>[\d.]+):(?P<least>[\d.]+)-(?P<most>[\d.]+)")


def noisy(spec: RunSpec) -> bool:
    return spec.noise.where != NOWHERE


def late_share(noise: NoiseSpec, late_ms: float) -> float:
    """Return the probability that a packet due at a random time is late by more than `late_ms`."""
    if not noise.where or late_ms >= noise.most_ms:
        return 0.0
    if late_ms <= noise.least_ms:
        return ((noise.least_ms + noise.most_ms) / 2 - late_ms) / noise.every_ms
    width = noise.most_ms - noise.least_ms
    return (noise.most_ms - late_ms) ** 2 / (2 * width) / noise.every_ms


def lateness_ms(noise: NoiseSpec, quantile: float) -> float:
    """Return the quantile of lateness in ms, e.g. the 99th percentile for 0.99: inverse of `late_share`."""
    late = 1 - quantile
    if late_share(noise, 0.0) <= late:
        return 0.0
    if late_share(noise, noise.least_ms) <= late:
        return (noise.least_ms + noise.most_ms) / 2 - late * noise.every_ms
    return noise.most_ms - math.sqrt(2 * (noise.most_ms - noise.least_ms) * late * noise.every_ms)


def stalls_of(where: str, p99_ms: float) -> NoiseSpec:
    """Return stalls that make the 99th percentile of lateness `p99_ms`.

    Their lengths are from half of that to twice that, as a hypervisor with other guests causes them.
    """
    times_ms = (round(part * p99_ms, 3) for part in (EVERY, SHORTEST, LONGEST))
    return NoiseSpec(where, *times_ms)


def delay_budget_us(spec: RunSpec, hops: int) -> float:
    """Return the delay of a full frame over `hops` links, one of which has a full queue, in microseconds.

    The delay is the sum of that queue's drain time, propagation and transmission.
    """
    return queue_us(spec.link) + hops * (FRAME_BITS / spec.link.rate_mbps + spec.link.delay_us)


def queue_us(link: LinkSpec) -> float:
    """Return the time a full switch queue takes to drain, in microseconds; 0 if the queue is unbounded."""
    bits = link.queue_bytes * 8 if link.queue_bytes else link.queue_pkts * FRAME_BITS
    return bits / link.rate_mbps


def stalls_words(noise: NoiseSpec) -> str:
    """Return the stalls in the syntax of --stalls: `all:100:2-6`; empty without stalls."""
    if not noise.where:
        return ""
    every, least, most = map(_digits, (noise.every_ms, noise.least_ms, noise.most_ms))
    return f"{noise.where}:{every}:{least}-{most}"


def _digits(value: float) -> str:
    """Return as many digits as are needed to parse the same value again."""
    return repr(value).removesuffix(".0")


def parse_stalls(text: str) -> NoiseSpec:
    """Parse `WHERE:EVERY_MS:LEAST-MAX_MS`, e.g. `all:100:2-6`, or `none`. Raises UsageError."""
    if text == "none":
        return QUIET
    found = _STALLS.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        return NoiseSpec(found["where"], float(found["every"]), float(found["least"]), float(found["most"]))
    except ValueError:
        raise UsageError(
            f"--stalls {text}: write WHERE:EVERY_MS:LEAST-MAX_MS, e.g. --stalls all:100:2-6, or none"
        ) from None
