"""Matrices of pairs: random, permuted and structured ones whose flows last until the run ends; incast and
random flows to one host; several flows from each host; the shuffle of map-reduce; and flows by the location
of hosts, taken from their names (same rack, pod or switch). Pure.

Source of incast: Narayan et al., Restructuring Endpoint Congestion Control, SIGCOMM 2018: 50 senders.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from common.errors import UsageError
from workloads import sizes as distributions
from workloads.flow import (
    MAX_KB,
    MAX_MESH,
    MAX_MS,
    Flow,
    Traffic,
    anybody_else,
    at_least,
    enough,
    not_too_many,
    others,
    percentage,
    permuted,
    within,
)
from workloads.generated import arrivals

PACKET_BYTES = 1448
"""Payload of a full segment on Ethernet, with timestamps."""
MAX_PACKETS, MAX_SPREAD_BYTES = 10**7, 10**9


def incast(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, packets: int = 100, spread_bytes: int = 12_500
) -> tuple[Flow, ...]:
    """Return a flow of `packets` full segments from every host to the last one, all at about the same time.

    Flows start at random within the time that a host's links take for `spread_bytes`: 10 us at 10 Gb/s.
    Raises UsageError for fewer than two hosts, or for numbers out of range.
    """
    enough("incast", hosts)
    within("incast", "packets", packets, 1, MAX_PACKETS)
    within("incast", "spread_bytes", spread_bytes, 0, MAX_SPREAD_BYTES)
    rng = random.Random(seed)
    spread_s = spread_bytes / traffic.host_bytes_per_s
    return tuple(
        Flow(host, hosts[-1], packets * PACKET_BYTES, rng.random() * spread_s) for host in hosts[:-1]
    )


def to_one(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, load: int = 50, sizes: str = "websearch"
) -> tuple[Flow, ...]:
    """Return flows from random hosts to the last one, which arrive as a Poisson process.

    They offer `load` percent of the receiver's links, in payload. `sizes` is a distribution
    (workloads/sizes.py). Flows are in the order of their starts. Raises UsageError for fewer than two hosts,
    a load outside 1 .. 99 or too many flows.
    """
    enough("to_one", hosts)
    within("to_one", "load", load, 1, 99)
    of_size = distributions.parse(sizes)
    per_s = load / 100 * traffic.host_bytes_per_s / of_size.mean_bytes
    not_too_many("to_one", per_s * traffic.seconds, "lower the load or the time")
    rng = random.Random(seed)
    return tuple(
        Flow(rng.choice(hosts[:-1]), hosts[-1], of_size.draw(rng), start_s)
        for start_s in arrivals(rng, per_s, traffic.seconds)
    )


_ANY, _DISTINCT = "any", "distinct"


def connections_per_host(
    hosts: Sequence[str], seed: int, *, flows: int = 1, percent: int = 100, to: str = _DISTINCT
) -> tuple[Flow, ...]:
    """Return `flows` flows from each of `percent` of the hosts, to other hosts drawn at random.

    With `to=distinct` no two flows of a sender have the same destination; with `to=any` every destination is
    drawn independently. Senders are in the order of `hosts`. The traffic matrix of SIGCOMM 2011 (Raiciu et
    al.) with several connections per host. Raises UsageError for parameters that no such matrix has.
    """
    percentage("connections_per_host", "percent", percent, 1)
    if to not in {_ANY, _DISTINCT}:
        raise UsageError(f"workload connections_per_host: to must be {_DISTINCT} or {_ANY}, not '{to}'")
    most = len(hosts) - 1 if to == _DISTINCT else None
    if flows < 1 or len(hosts) < 2 or (most is not None and flows > most):
        most_words = "" if most is None else f" to {max(most, 1)}"
        raise UsageError(
            f"workload connections_per_host: {flows} flows per host on {len(hosts)} hosts are impossible: "
            f"choose from 1{most_words}, on at least 2 hosts"
        )
    not_too_many("connections_per_host", flows * max(1, round(len(hosts) * percent / 100)), "lower flows")
    rng = random.Random(seed)
    senders = _share(hosts, percent, rng)
    return tuple(
        Flow(src, dst) for src in hosts if src in senders for dst in _others(rng, hosts, src, flows, to)
    )


def permutation_share(hosts: Sequence[str], seed: int, *, percent: int = 50) -> tuple[Flow, ...]:
    """Return one flow from each of `percent` of the hosts to distinct other hosts.

    They are the flows of `one_to_one` with the same seed whose senders were drawn, so the destinations are
    distinct, and for one seed a larger share includes a smaller one. Raises UsageError for a percentage
    outside 1 to 100, or for fewer than two hosts.
    """
    percentage("permutation_share", "percent", percent, 1)
    rng = random.Random(seed)
    receiver = permuted("permutation_share", hosts, rng)
    senders = _share(hosts, percent, rng)
    return tuple(Flow(host, receiver[host]) for host in hosts if host in senders)


def joined_permutation(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, after_ms: int = 300, kb: int = 10_000
) -> tuple[Flow, ...]:
    """Return a random permutation of long flows, and a second one of `kb` thousand bytes per flow that begins
    `after_ms` after the start.

    While a host has two flows, each has half of the demand. `traffic` is not used. Raises UsageError for
    parameters below 1, or for fewer than two hosts.
    """
    del traffic
    within("joined_permutation", "after_ms", after_ms, 1, MAX_MS)
    within("joined_permutation", "kb", kb, 1, MAX_KB)
    rng = random.Random(seed)
    first, second = (permuted("joined_permutation", hosts, rng) for _ in range(2))
    joining = (Flow(host, second[host], size_bytes=1000 * kb, start_s=after_ms / 1000) for host in hosts)
    return (*(Flow(host, first[host]) for host in hosts), *joining)


def _share(hosts: Sequence[str], percent: int, rng: random.Random) -> frozenset[str]:
    """Draw `percent` of the hosts, one at least; for one state of `rng` a larger share includes a smaller."""
    shuffled = rng.sample(hosts, len(hosts))
    return frozenset(shuffled[: max(1, round(len(hosts) * percent / 100))])


def _others(rng: random.Random, hosts: Sequence[str], host: str, count: int, to: str) -> list[str]:
    others = [other for other in hosts if other != host]
    return rng.sample(others, count) if to == _DISTINCT else rng.choices(others, k=count)


_IN_POD = re.compile(r"(p\d+)e\d+(?=h\d+$)")
RACK, POD = 0, 1
"""Groups of this expression."""
_DIGITS = re.compile(r"h(\d+)$")


def local(
    hosts: Sequence[str], seed: int, *, rack: int = 50, pod: int = 30, percent: int = 100
) -> tuple[Flow, ...]:
    """Return `percent` connections per 100 hosts, most of them local.

    `rack` percent stay in the sender's rack, `pod` percent leave it but stay in its pod, and the others go to
    other pods; the ends are drawn at random. Each sender is drawn independently, so a larger number of
    connections includes the smaller one. The matrix needs a FatTree, whose host names contain rack and pod.
    (A rack of a dual-homed FatTree is the hosts below one pair of switches.) Raises UsageError elsewhere, and
    for invalid percentages.
    """
    if not (rack >= 0 <= pod and rack + pod <= 100 and percent >= 1):
        raise UsageError(
            f"workload local: rack={rack} and pod={pod} must be percentages of at most 100 together, and "
            f"percent={percent} at least 1"
        )
    count = len(hosts) * percent / 100
    not_too_many("local", count, "lower percent")
    racks, pods = (_together(hosts, level) for level in (RACK, POD))
    rng = random.Random(seed)
    flows = []
    for _ in range(max(1, round(count))):
        src, where = rng.choice(hosts), 100 * rng.random()
        if where < rack:
            inside, outside = racks[src], {src}
        elif where < rack + pod:
            inside, outside = pods[src], set(racks[src])
        else:
            inside, outside = hosts, set(pods[src])
        if outside.issuperset(inside):
            raise UsageError(
                f"workload local: {src} has no other host to send to in its rack, its pod or another pod: "
                "choose another rack=, pod= or a larger network"
            )
        flows.append(Flow(src, _other_than(rng, inside, outside)))
    return tuple(flows)


def neighbours(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return a flow from every BCube server to each that shares a switch with it: (k+1)(n-1) per server.

    Their addresses differ in one digit (topos/bcube.py). `seed` is not used. Raises UsageError if names are
    no such addresses.
    """
    del seed
    addresses = _addresses(hosts)
    named = {address: host for host, address in addresses.items()}
    base = 1 + max(max(address) for address in named)
    return tuple(
        Flow(host, named[(*address[:place], digit, *address[place + 1 :])])
        for host, address in addresses.items()
        for place in range(len(address))
        for digit in range(base)
        if digit != address[place]
    )


def _together(hosts: Sequence[str], level: int) -> dict[str, Sequence[str]]:
    """Return for each host all hosts of its rack or pod, including itself."""
    groups: dict[str, list[str]] = {}
    for host in hosts:
        groups.setdefault(_place(host, level), []).append(host)
    return {host: groups[_place(host, level)] for host in hosts}


def _place(host: str, level: int) -> str:
    found = _IN_POD.match(host)
    if not found:
        raise UsageError(
            f"workload local needs host names with rack and pod, but {host} has none: choose topology "
            "fat_tree or dual_homed_fat_tree"
        )
    return found[level]


def _other_than(rng: random.Random, inside: Sequence[str], outside: set[str]) -> str:
    """Draw uniformly from `inside` without `outside`, by repeated draws."""
    while (drawn := rng.choice(inside)) in outside:
        pass
    return drawn


def _addresses(hosts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return each server's address as digits.

    A digit has one place in a name, or two if there are more than ten. Only one of the two readings gives as
    many addresses as there are hosts.
    """
    for width in (1, 2):
        read = {host: _digits(host, width) for host in hosts}
        base = 1 + max((digit for address in read.values() for digit in address), default=0)
        if all(base ** len(address) == len(hosts) for address in read.values()):
            return read
    raise UsageError(
        f"workload neighbours needs BCube addresses, but {hosts[0]} is none: choose topology bcube"
    )


def _digits(host: str, width: int) -> tuple[int, ...]:
    found = _DIGITS.match(host)
    text = found[1] if found else ""
    return tuple(int(text[at : at + width]) for at in range(0, len(text), width))


_LEFT = re.compile(r"l(\d+)\D")


def one_to_one(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return a random permutation: every host sends one flow and receives one, never its own.

    It is drawn as in the CS244 2013 reproduction (source: code): hosts are shuffled and split into halves,
    and each half is matched at random to the other. Flows are in the order of `hosts`, so flow numbers do not
    depend on the seed. An odd number of hosts makes one ring. Raises UsageError for fewer than two.
    """
    receiver = permuted("one_to_one", hosts, random.Random(seed))
    return tuple(Flow(host, receiver[host]) for host in hosts)


def one_to_several(
    hosts: Sequence[str], seed: int, *, clients: int = 4, servers: int = 100
) -> tuple[Flow, ...]:
    """Return flows to `servers` percent of the hosts, each from `clients` other hosts drawn at random.

    It is drawn as in the CS244 2013 reproduction (source: code), where every host is a server and iperf
    clients send. A server's link carries `clients` flows, so each can have 1/clients of it; a host may be the
    client of any number of servers. With fewer servers, drawn at random, the core is less loaded. Flows are
    ordered by server as in `hosts`. Raises UsageError if there are fewer other hosts than `clients`.
    """
    at_least("one_to_several", "clients", clients, 1)
    others("one_to_several", "clients", clients, len(hosts))
    percentage("one_to_several", "servers", servers, 1)
    count = max(1, round(len(hosts) * servers / 100))
    not_too_many("one_to_several", count * clients, "lower clients or servers", MAX_MESH)
    rng = random.Random(seed)
    chosen = set(hosts) if count == len(hosts) else set(rng.sample(hosts, count))
    others_of = range(len(hosts) - 1)  # the places of all hosts but one
    return tuple(
        Flow(hosts[place + (place >= at)], server)
        for at, server in enumerate(hosts)
        if server in chosen
        for place in rng.sample(others_of, clients)
    )


def all_to_all(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return one flow from every host to every other: n (n - 1) flows, 16 256 for 128 hosts.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    others("all_to_all", "at least", 1, len(hosts))
    not_too_many("all_to_all", len(hosts) * (len(hosts) - 1), "choose a smaller network", MAX_MESH)
    return tuple(Flow(src, dst) for src in hosts for dst in hosts if src != dst)


def stride(hosts: Sequence[str], seed: int, *, i: int = 0) -> tuple[Flow, ...]:
    """Return a flow from each host x to host (x + i) mod n.

    i = 0 stands for n/2, with which every flow crosses the core of a FatTree. Source: Al-Fares et al.,
    SIGCOMM 2008 (section 5) and Hedera, NSDI 2010, who call it Stride(i). `seed` is not used. Raises
    UsageError for fewer than two hosts, or for an i outside 1 .. n - 1.
    """
    del seed
    n = len(hosts)
    others("stride", "at least", 1, n)
    step = i or n // 2
    if not 1 <= step < n:
        raise UsageError(f"workload stride: i={i} with {n} hosts is invalid: choose i from 1 to {n - 1}")
    return tuple(Flow(hosts[x], hosts[(x + step) % n]) for x in range(n))


def hotspot(hosts: Sequence[str], seed: int, *, spots: int = 2, percent: int = 50) -> tuple[Flow, ...]:
    """Return one flow per host: `percent` of the hosts send to `spots` hot hosts, the others to random hosts.

    Hot hosts and their senders are drawn at random. Senders are distributed evenly, so about
    n percent / (100 spots) flows share a hot host's link. The other receivers are drawn as in `random`. This
    is the hotspot pattern of the MPTCP authors' simulator (htsim's connection matrix: some spots, many
    senders each) on the background that Hedera (NSDI 2010) calls Random. Raises UsageError for parameters
    that make every host hot.
    """
    at_least("hotspot", "spots", spots, 1)
    percentage("hotspot", "percent", percent, 0)
    others("hotspot", "spots", spots, len(hosts))
    rng = random.Random(seed)
    hot = rng.sample(hosts, spots)
    cold = rng.sample([host for host in hosts if host not in hot], len(hosts) - spots)
    drawn = cold[: min(len(cold), round(len(hosts) * percent / 100))]
    receiver = {host: hot[number % spots] for number, host in enumerate(drawn)}
    return tuple(Flow(host, receiver.get(host) or anybody_else(rng, hosts, host)) for host in hosts)


def random_pairs(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return as many flows as hosts, with source and destination drawn independently but never equal.

    Unlike in a permutation, several flows or none may share a host's link. (In the random traffic matrix of
    SIGCOMM 2011 and of Hedera, NSDI 2010, every host sends one flow, and only receivers are drawn.) Raises
    UsageError for fewer than two hosts.
    """
    others("random", "at least", 1, len(hosts))
    rng = random.Random(seed)
    sources = rng.choices(hosts, k=len(hosts))
    return tuple(Flow(src, anybody_else(rng, hosts, src)) for src in sources)


def connections(hosts: Sequence[str], seed: int, *, percent: int = 100) -> tuple[Flow, ...]:
    """Return `percent` connections per 100 hosts, drawn as in `random`.

    For one seed, a larger number of connections includes the smaller one. Raises UsageError for fewer than
    two hosts.
    """
    others("connections", "at least", 1, len(hosts))
    at_least("connections", "percent", percent, 1)
    count = len(hosts) * percent / 100
    not_too_many("connections", count, "lower percent")
    rng = random.Random(seed)
    sources = (rng.choice(hosts) for _ in range(max(1, round(count))))
    return tuple(Flow(src, anybody_else(rng, hosts, src)) for src in sources)


def against_tcp(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return a flow from every host on the left to the opposite host.

    The first flow of each replica uses the transport under test, the others plain TCP. Host names give the
    positions, as in topos/dumbbell.py and topos/two_bottlenecks.py: `l3h1` is on the left of replica 3,
    opposite `r3h1`. `seed` is not used. Raises UsageError if hosts have no such names.
    """
    del seed
    there = set(hosts)
    flows: dict[str, list[Flow]] = {}
    for host in hosts:
        replica = replica_of(host)
        opposite = f"r{host[1:]}"
        if replica is not None and opposite in there:
            of_replica = flows.setdefault(replica, [])
            of_replica.append(Flow(host, opposite, plain=bool(of_replica)))
    if not flows:
        raise UsageError(
            f"workload against_tcp needs hosts that face each other, and {hosts[0]} does not: "
            "choose topology dumbbell or two_bottlenecks"
        )
    return tuple(flow for of_replica in flows.values() for flow in of_replica)


def replica_of(sender: str) -> str | None:
    """Return the replica of a host on the left, `3` for `l3h1`; None for any other host."""
    found = _LEFT.match(sender)
    return found[1] if found else None


def reference(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return one uncongested flow from the first host to the last, which defines 100 %.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    if len(hosts) < 2:
        raise UsageError(f"workload reference needs at least two hosts, not {len(hosts)}: change k or n")
    return (Flow(hosts[0], hosts[-1]),)


MAPS = REDUCES = 8
KB = 23_000
"""Eight such transfers take 1.55 s on an idle link of 1 Gb/s."""


def map_reduce(
    hosts: Sequence[str],
    seed: int,
    *,
    jobs: int = 0,
    maps: int = MAPS,
    reduces: int = REDUCES,
    kb: int = KB,
) -> tuple[Flow, ...]:
    """Return the transfers of `jobs` jobs, job by job: `maps` times `reduces` of `kb` thousand bytes each.

    Every host is a mapper or a reducer of one job at most; hosts are drawn at random. All transfers start
    together. jobs = 0 stands for as many as the hosts allow. Raises UsageError for numbers below 1 or more
    jobs than hosts.
    """
    for name, value in (("maps", maps), ("reduces", reduces), ("kb", kb)):
        if value < 1:
            raise UsageError(f"workload map_reduce: {name}={value} is invalid: choose 1 or more")
    each = maps + reduces
    most = len(hosts) // each
    if not 0 <= jobs <= most or most == 0:
        raise UsageError(
            f"workload map_reduce: {max(1, jobs)} jobs need {max(1, jobs) * each} hosts, but there are "
            f"{len(hosts)}: choose fewer jobs, maps or reduces, or a larger network"
        )
    not_too_many("map_reduce", (jobs or most) * maps * reduces, "choose fewer maps or reduces", MAX_MESH)
    drawn = random.Random(seed).sample(hosts, (jobs or most) * each)
    members = [drawn[first : first + each] for first in range(0, len(drawn), each)]
    return tuple(
        Flow(mapper, reducer, 1000 * kb) for job in members for mapper in job[:maps] for reducer in job[maps:]
    )
