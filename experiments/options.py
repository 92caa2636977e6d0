"""Options of a sweep: text as typed, checked once, turned into one immutable value. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from controllers.routing import POLICIES
from engines.registry import ENGINES
from engines.spec import MAX_SUBFLOWS, SamplingSpec
from experiments.profiles import DEFAULT, PROFILES
from experiments.reference import MATRIX
from fabric.errors import UsageError
from workloads.matrices import MATRICES

CONGESTION_CONTROLS = ("reno", "cubic", "bbr")
DATAPLANES = ("fabric",)
TRAFFIC = ("iperf3",)
QUEUE_SAMPLE_MS = 100
SOCKET_SAMPLE_MS = 1000
PING_MS = 1000
AUTO = "auto"
MAX_SEEDS = 1000
MAX_K = 48
"""27 648 hosts: planning still takes a moment only; topologies themselves go further."""
LEAST_RATE_MBPS, MOST_RATE_MBPS = 0.01, 400_000.0
MOST_QUEUE_PKTS = 1_000_000
MOST_DELAY_US = 10_000_000.0


def sweep_workloads() -> tuple[str, ...]:
    """Traffic matrices a sweep can ask for; the reference runs by itself."""
    return tuple(name for name in MATRICES if name != MATRIX)


@dataclass(frozen=True)
class Given:
    """Options as typed; None where the profile or the experiment decides."""

    k: str | None = None
    workload: str | None = None
    subflows: str | None = None
    cc: str = "reno"
    engine: str = "mininet"
    dataplane: str = "fabric"
    traffic: str = "iperf3"
    routing: str = "hashed"
    rate: str | None = None
    queue: int = 100
    delay: float = 0.0
    seconds: float | None = None
    warmup: float | None = None
    seed: int = 1
    seeds: int | None = None
    profile: str = DEFAULT
    qmon: bool = False


@dataclass(frozen=True)
class Defaults:
    """What an experiment runs when neither option nor profile says otherwise."""

    ks: tuple[int, ...]
    workloads: tuple[str, ...]
    subflows: tuple[int, ...]


@dataclass(frozen=True)
class SweepOptions:
    """Checked options. Rates in Mb/s (None: auto), queue in packets, delay in microseconds a link."""

    ks: tuple[int, ...]
    workloads: tuple[str, ...]
    subflows: tuple[int, ...]
    cc: str
    engine: str
    dataplane: str
    traffic: str
    routing: str
    rate_mbps: float | None
    queue_pkts: int
    delay_us: float
    seconds: float
    warmup_s: float
    seeds: tuple[int, ...]
    sampling: SamplingSpec


def resolve(given: Given, defaults: Defaults) -> SweepOptions:
    """Explicit options over the profile's over the experiment's. Raises UsageError, one line."""
    profile = PROFILES[one_of("--profile", given.profile, PROFILES)]
    return SweepOptions(
        ks=parse_ks(given.k) if given.k else profile.ks or defaults.ks,
        workloads=parse_workloads(given.workload) if given.workload else defaults.workloads,
        subflows=parse_subflows(given.subflows) if given.subflows else profile.subflows or defaults.subflows,
        cc=one_of("--cc", given.cc, CONGESTION_CONTROLS),
        engine=one_of("--engine", given.engine, ENGINES),
        dataplane=one_of("--dataplane", given.dataplane, DATAPLANES),
        traffic=one_of("--traffic", given.traffic, TRAFFIC),
        routing=one_of("--routing", given.routing, POLICIES),
        rate_mbps=parse_rate(given.rate) if given.rate else profile.rate_mbps,
        queue_pkts=int(at_least("--queue", given.queue, 1, "packet", MOST_QUEUE_PKTS)),
        delay_us=at_least("--delay", given.delay, 0, "us", MOST_DELAY_US),
        seconds=above_zero("--seconds", given.seconds if given.seconds is not None else profile.seconds, "s"),
        warmup_s=at_least("--warmup", given.warmup if given.warmup is not None else profile.warmup_s, 0, "s"),
        seeds=_seeds(given.seed, given.seeds if given.seeds is not None else profile.seeds),
        sampling=SamplingSpec(QUEUE_SAMPLE_MS if given.qmon else 0, SOCKET_SAMPLE_MS, PING_MS),
    )


def parse_ints(option: str, text: str) -> tuple[int, ...]:
    """`1,2,8` and `1-8` and mixtures, in order, once each. Raises UsageError."""
    values: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(low + high) > 8:
            raise UsageError(
                f"{option} {text}: {part.strip()!r} is not a number or a range; write e.g. 1,2,8 or 1-8"
            )
        first, last = int(low), int(high or low)
        if last < first or last - first > 1000:
            raise UsageError(
                f"{option} {text}: the range {part.strip()} is empty or too long; write e.g. 1-8"
            )
        values.extend(range(first, last + 1))
    return tuple(dict.fromkeys(values))


def parse_ks(text: str) -> tuple[int, ...]:
    """FatTree arities: even, from 4 to MAX_K. Raises UsageError."""
    if any(part.count("-") for part in text.split(",")):
        raise UsageError(f"--k {text}: list the sizes, e.g. --k 4,6,8")
    ks = parse_ints("--k", text)
    for k in ks:
        if not 4 <= k <= MAX_K or k % 2:
            raise UsageError(
                f"--k {text}: a FatTree needs an even k from 4 to {MAX_K}, not {k}; e.g. --k 4,8"
            )
    return ks


def parse_subflows(text: str) -> tuple[int, ...]:
    """Subflow counts, 1 being plain TCP. Raises UsageError outside 1..32."""
    counts = parse_ints("--subflows", text)
    for count in counts:
        if not 1 <= count <= MAX_SUBFLOWS:
            raise UsageError(f"--subflows {text}: {count} is outside 1..{MAX_SUBFLOWS} (1 is plain TCP)")
    return counts


def parse_workloads(text: str) -> tuple[str, ...]:
    """Names of traffic matrices, or `all`. Raises UsageError on an unknown one."""
    known = sweep_workloads()
    if text == "all":
        return known
    return tuple(dict.fromkeys(one_of("--workload", name.strip(), known) for name in text.split(",")))


def parse_rate(text: str) -> float | None:
    """Link rate in Mb/s; None for `auto`. Raises UsageError."""
    if text == AUTO:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise UsageError(f"--rate {text}: give Mb/s above 0, e.g. --rate 5, or --rate auto")
    return at_least("--rate", rate, LEAST_RATE_MBPS, "Mb/s", MOST_RATE_MBPS)


def one_of(option: str, value: str, known: Collection[str]) -> str:
    """`value` when known. Raises UsageError listing what is known."""
    if value not in known:
        raise UsageError(f"{option} {value}: unknown; choose from: {', '.join(known)}")
    return value


def at_least(option: str, value: float, minimum: float, unit: str, most: float = math.inf) -> float:
    """`value` when finite, not below `minimum` and not above `most`. Raises UsageError."""
    if not math.isfinite(value) or value < minimum:
        raise UsageError(f"{option} {value:g}: must be at least {minimum:g} {unit}")
    if value > most:
        raise UsageError(f"{option} {value:g}: must be at most {most:g} {unit}")
    return value


def above_zero(option: str, value: float, unit: str) -> float:
    """`value` when finite and above 0. Raises UsageError."""
    if not math.isfinite(value) or value <= 0:
        raise UsageError(f"{option} {value:g}: must be above 0 {unit}")
    return value


def _seeds(first: int, count: int) -> tuple[int, ...]:
    at_least("--seed", first, 0, "")
    if not 1 <= count <= MAX_SEEDS:
        raise UsageError(f"--seeds {count}: must be in 1..{MAX_SEEDS}")
    return tuple(range(first, first + count))
