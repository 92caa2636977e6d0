"""Workloads whose flows start at different times: Poisson arrivals, closed loops, short beside long flows.

They determine when flows start and how large they are, never how fast they are. All draws are made in advance
from the seed, by comparisons and basic arithmetic, so every machine draws the same flows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from common.draws import exponential
from common.errors import UsageError
from workloads import sizes as distributions
from workloads.flow import MAX_KB, Flow, Traffic, anybody_else, enough, not_too_many, permuted, within

MAX_DSCP = 63
FULL_FRAME_BITS = 1514 * 8
_WIRE_SHARE = 1500 / 1460
PAIRS = ("random", "fixed")
PERMUTED_SIZES = "uniform-1000000-20000000"
"""Transfers of about one second each at 100 Mb/s."""


def arrivals(rng: random.Random, per_s: float, until_s: float) -> Iterator[float]:
    """Yield the times of a Poisson process from 0 to `until_s`."""
    t_s = exponential(rng) / per_s
    while t_s < until_s:
        yield t_s
        t_s += exponential(rng) / per_s


def poisson(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    load: int = 40,
    sizes: str = "websearch",
    pairs: str = "random",
) -> tuple[Flow, ...]:
    """Return flows that arrive as a Poisson process and offer `load` percent of the hosts' links, in payload.

    `sizes` is a distribution (workloads/sizes.py). With `pairs` = `random`, both ends of every flow are drawn
    independently. With `fixed`, the sender is drawn, and its receiver never changes (a permutation). Flows
    are in the order of their starts. Raises UsageError for a load outside 1 .. 100 or too many flows.
    """
    within("poisson", "load", load, 1, 100)
    if pairs not in PAIRS:
        raise UsageError(f"workload poisson: pairs is {' or '.join(PAIRS)}, not '{pairs}'")
    enough("poisson", hosts)
    of_size = distributions.parse(sizes)
    per_s = len(hosts) * load / 100 * traffic.host_bytes_per_s / of_size.mean_bytes
    not_too_many("poisson", per_s * traffic.seconds, "lower the load or the time")
    rng = random.Random(seed)
    receiver = _receivers(hosts, rng, pairs)
    flows = []
    for start_s in arrivals(rng, per_s, traffic.seconds):
        src = rng.choice(hosts)
        flows.append(Flow(src, receiver(src), of_size.draw(rng), start_s))
    return tuple(flows)


def pairs(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, load: int = 60, sizes: str = "websearch"
) -> tuple[Flow, ...]:
    """Return the flows of pFabric's evaluation: one Poisson process for every ordered pair of hosts.

    Together they offer `load` percent of the hosts' links, counted with 40 bytes of headers for every 1460 of
    payload: a host starts load C / (E[size] 1500 / 1460) flows per second, each to any other host with equal
    probability. The sum of such processes is one Poisson process whose flows draw their pair, and they are
    drawn in that way.
    Source: Alizadeh et al., pFabric, SIGCOMM 2013, section 5.1, and the authors' ns-2 scripts. Flows are in
    the order of their starts. Raises UsageError as `poisson`, and for a load of 100 or more, which has no
    steady state.
    """
    within("pairs", "load", load, 1, 99)
    enough("pairs", hosts)
    of_size = distributions.parse(sizes)
    per_s = len(hosts) * load / 100 * traffic.host_bytes_per_s / (of_size.mean_bytes * _WIRE_SHARE)
    not_too_many("pairs", per_s * traffic.seconds, "lower the load or the time")
    rng = random.Random(seed)
    flows = []
    for start_s in arrivals(rng, per_s, traffic.seconds):
        src = rng.choice(hosts)
        flows.append(Flow(src, anybody_else(rng, hosts, src), of_size.draw(rng), start_s))
    return tuple(flows)


def transfers(hosts: Sequence[str], seed: int, traffic: Traffic, *, kb: int = 1000) -> tuple[Flow, ...]:
    """Return a random permutation: every host sends `kb` thousand bytes, and all start at once.

    `traffic` is not used. Flows are in the order of `hosts`. Raises UsageError for a size below 1, or fewer
    than two hosts.
    """
    del traffic
    within("transfers", "kb", kb, 1, MAX_KB)
    receiver = permuted("transfers", hosts, random.Random(seed))
    return tuple(Flow(host, receiver[host], 1000 * kb) for host in hosts)


def closed_loop(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    think_ms: int = 0,
    sizes: str = "websearch",
    at_once: int = 1,
) -> tuple[Flow, ...]:
    """Return chains of flows: every host always has `at_once` flows to random other hosts.

    When a flow is completely acknowledged, its successor starts after a think time of `think_ms` on average
    (exponentially distributed). The number of successors is what would complete if each flow were alone on
    the host's links, more than any transport completes. Raises UsageError if these are too many.
    """
    within("closed_loop", "think_ms", think_ms, 0, 1_000_000)
    within("closed_loop", "at_once", at_once, 1, 1000)
    enough("closed_loop", hosts)
    of_size = distributions.parse(sizes)
    think_s = think_ms / 1000
    each_s = of_size.mean_bytes / traffic.host_bytes_per_s + think_s
    not_too_many(
        "closed_loop", len(hosts) * at_once * (traffic.seconds / each_s + 1), "think longer or take less time"
    )
    rng = random.Random(seed)
    senders = [host for host in hosts for _ in range(at_once)]
    return _chains(senders, rng, traffic, of_size, think_s, lambda src: anybody_else(rng, hosts, src))


def permuted_loop(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, sizes: str = PERMUTED_SIZES, think_ms: int = 0
) -> tuple[Flow, ...]:
    """Return `closed_loop` with one flow at once, in which a host's receiver never changes.

    Receivers are a permutation, so flows come and go but never share a host's link. Raises UsageError as
    `closed_loop`, and for an odd number of hosts.
    """
    within("permuted_loop", "think_ms", think_ms, 0, 1_000_000)
    of_size = distributions.parse(sizes)
    each_s = of_size.mean_bytes / traffic.host_bytes_per_s + think_ms / 1000
    not_too_many("permuted_loop", len(hosts) * (traffic.seconds / each_s + 1), "make flows larger")
    rng = random.Random(seed)
    receiver = permuted("permuted_loop", hosts, rng)
    return _chains(hosts, rng, traffic, of_size, think_ms / 1000, receiver.__getitem__)


def _chains(
    senders: Sequence[str],
    rng: random.Random,
    traffic: Traffic,
    of_size: distributions.Sizes,
    think_s: float,
    receiver: Callable[[str], str],
) -> tuple[Flow, ...]:
    """Return for each sender as many sequential flows as the host's links could carry one at a time."""
    flows: list[Flow] = []
    for src in senders:
        spent_s, before = 0.0, None
        while spent_s < traffic.seconds:
            size, pause_s = of_size.draw(rng), think_s * exponential(rng)
            flows.append(Flow(src, receiver(src), size, pause_s, after=before))
            before = len(flows) - 1
            spent_s += pause_s + size / traffic.host_bytes_per_s
    return tuple(flows)


def short_and_long(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    long: int = 33,
    size: int = 70_000,
    gap_ms: int = 200,
    dscp: int = 0,
) -> tuple[Flow, ...]:
    """Return long flows of `long` percent of the hosts, and short flows of the others.

    Long flows use the transport under test and send until the run ends. Each other host starts a flow of
    `size` bytes over plain TCP every `gap_ms` on average (Poisson), with class of service `dscp`. Receivers
    are a permutation.

    Source: Raiciu et al., SIGCOMM 2011, on short flows in an oversubscribed FatTree. Long flows come first.
    Raises UsageError for fewer than two hosts or invalid percentages.
    """
    return _short_and_long(hosts, seed, traffic, long, gap_ms, size, dscp, plain=True)


def short_and_long_alike(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    long: int = 33,
    size: int = 70_000,
    gap_ms: int = 200,
) -> tuple[Flow, ...]:
    """Return the flows of `short_and_long`, with the short ones over the transport under test too."""
    return _short_and_long(hosts, seed, traffic, long, gap_ms, size, 0, plain=False)


def _short_and_long(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    long: int,
    gap_ms: int,
    size: int,
    dscp: int,
    *,
    plain: bool,
) -> tuple[Flow, ...]:
    within("short_and_long", "long", long, 0, 100)
    within("short_and_long", "size", size, 1, 10**12)
    within("short_and_long", "gap_ms", gap_ms, 1, 1_000_000)
    within("short_and_long", "dscp", dscp, 0, MAX_DSCP)
    rng = random.Random(seed)
    receiver = permuted("short_and_long", hosts, rng)
    chosen = set(rng.sample(hosts, round(len(hosts) * long / 100)))
    short = [host for host in hosts if host not in chosen]
    endless = tuple(Flow(host, receiver[host]) for host in hosts if host in chosen)
    per_s = len(short) * 1000 / gap_ms
    not_too_many("short_and_long", per_s * traffic.seconds, "make gap_ms longer")
    if not short:
        return endless
    starts = ((rng.choice(short), start_s) for start_s in arrivals(rng, per_s, traffic.seconds))
    return endless + tuple(
        Flow(src, receiver[src], size, start_s, plain=plain, dscp=dscp) for src, start_s in starts
    )


def constant_rate(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    percent: int = 10,
    senders: int = 100,
    dscp: int = 0,
) -> tuple[Flow, ...]:
    """Return flows of constant rate from `senders` percent of the hosts, drawn at random.

    Each sends packets at `percent` percent of its host's links (headers included) with class `dscp`,
    regardless of losses. Receivers are a permutation. Each flow begins at a random time within its first
    interval between packets. Flows are in the order of `hosts`. Raises UsageError for numbers out of range or
    fewer than two hosts.
    """
    within("constant_rate", "percent", percent, 1, 1000)
    within("constant_rate", "senders", senders, 1, 100)
    within("constant_rate", "dscp", dscp, 0, MAX_DSCP)
    rng = random.Random(seed)
    receiver = permuted("constant_rate", hosts, rng)
    count = max(1, round(len(hosts) * senders / 100))
    chosen = set(hosts) if count == len(hosts) else set(rng.sample(hosts, count))
    rate_mbps = traffic.host_mbps * percent / 100
    interval_s = FULL_FRAME_BITS / (rate_mbps * 1e6)
    return tuple(
        Flow(host, receiver[host], start_s=rng.random() * interval_s, rate_mbps=rate_mbps, dscp=dscp)
        for host in hosts
        if host in chosen
    )


def _receivers(hosts: Sequence[str], rng: random.Random, pairs: str) -> Callable[[str], str]:
    if pairs == "fixed":
        return permuted("poisson", hosts, rng).__getitem__
    return lambda src: anybody_else(rng, hosts, src)
